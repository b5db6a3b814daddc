"""Models of German Credit, each trained and saved by its own library: what the tests and the table of files load."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from globece.datasets import load_german_credit

NUMBERS = ["Month-Duration", "Credit-Amount", "Age", "Instalment-Rate", "Residence", "Existing-Credits"]
TEXTS = ["Existing-Account-Status", "Savings-Account", "Purpose", "Housing"]
UNKNOWN = "unknown"  # stands for missing text where a library takes none


@dataclass(frozen=True, slots=True)
class Saved:
    """A way to save a model.

    Attributes
    ----------
    library, ending
        What trained it, and the file's ending.
    columns
        ``"numbers"`` or ``"numbers and text"``.
    missing
        What may be missing: ``"numbers"``, ``"both"`` or ``"none"``.
    make
        Trains on a frame and labels, saves to a file, and returns the library's own predictions for the frame.
    """

    library: str
    ending: str
    columns: str
    missing: str
    make: Callable[[Any, NDArray[Any], Path], NDArray[Any]]

    def rows(self, n: int | None = None) -> tuple[Any, NDArray[Any]]:
        """The frame that it is trained on, as a CSV file holds it, and the labels."""
        import pandas as pd

        data = load_german_credit()
        columns = NUMBERS + (TEXTS if "text" in self.columns else [])
        frame = data.frame[columns].copy()
        rng = np.random.default_rng(0)
        for name in columns:
            lost = rng.random(len(frame)) < 0.04
            if name in NUMBERS:
                frame[name] = frame[name].astype(float)
                if self.missing != "none":
                    frame.loc[lost, name] = np.nan
            else:
                values = frame[name].astype(object)
                values[lost] = None if self.missing == "both" else UNKNOWN
                frame[name] = pd.Series(values, dtype="str")
        return frame[:n], data.outcome.astype(int)[:n]


def _booster(kind: str, **settings: Any) -> Callable[[Any, NDArray[Any], Path], NDArray[Any]]:
    """XGBoost, LightGBM or CatBoost in its own format."""

    def make(frame: Any, y: NDArray[Any], file: Path) -> NDArray[Any]:
        model, rows = _fitted(kind, settings, frame, y)
        (model.booster_ if kind == "lightgbm" else model).save_model(str(file))
        return np.asarray(model.predict(rows))

    return make


def _fitted(kind: str, settings: dict[str, Any], frame: Any, y: NDArray[Any]) -> tuple[Any, Any]:
    texts = [name for name in frame.columns if name in TEXTS]
    rows = frame if kind == "catboost" else frame.astype(dict.fromkeys(texts, "category"))
    if kind == "xgboost":
        import xgboost

        model: Any = xgboost.XGBClassifier(n_estimators=40, max_depth=4, enable_categorical=bool(texts), **settings)
    elif kind == "lightgbm":
        import lightgbm

        model = lightgbm.LGBMClassifier(n_estimators=40, num_leaves=12, verbose=-1, **settings)
    else:
        import catboost

        model = catboost.CatBoostClassifier(
            iterations=40, depth=4, verbose=0, allow_writing_files=False, cat_features=texts, **settings
        )
    return model.fit(rows, y), rows


def _sklearn(classifier: str, ending: str) -> Callable[[Any, NDArray[Any], Path], NDArray[Any]]:
    """A pipeline of scikit-learn's through skops or skl2onnx."""

    def make(frame: Any, y: NDArray[Any], file: Path) -> NDArray[Any]:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the network need not converge
            model = _pipeline(classifier, frame).fit(frame, y)
        if ending == ".skops":
            import skops.io

            skops.io.dump(model, file)
        else:
            file.write_bytes(_converted(model, frame))
        return np.asarray(model.predict(frame))

    return make


def _pipeline(classifier: str, frame: Any) -> Any:
    from sklearn.compose import make_column_transformer
    from sklearn.ensemble import GradientBoostingClassifier, HistGradientBoostingClassifier, RandomForestClassifier
    from sklearn.impute import SimpleImputer
    from sklearn.linear_model import LogisticRegression
    from sklearn.neural_network import MLPClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler
    from sklearn.svm import SVC

    last = {
        "logistic": lambda: LogisticRegression(max_iter=2000),
        "forest": lambda: RandomForestClassifier(30, max_depth=6, random_state=0),
        "boosting": lambda: GradientBoostingClassifier(n_estimators=30, random_state=0),
        "histogram": lambda: HistGradientBoostingClassifier(max_iter=30, random_state=0),
        "network": lambda: MLPClassifier((12,), max_iter=300, random_state=0),
        "svm": lambda: SVC(),
    }[classifier]()
    texts = [name for name in frame.columns if name in TEXTS]
    numbers = [name for name in frame.columns if name in NUMBERS]
    if classifier == "histogram" and not texts:
        return make_pipeline(last)
    steps: list[Any] = [(make_pipeline(SimpleImputer(strategy="median"), StandardScaler()), numbers)]
    if texts:
        steps.insert(0, (OneHotEncoder(handle_unknown="ignore"), texts))
    return make_pipeline(make_column_transformer(*steps), last)


def _converted(model: Any, frame: Any) -> bytes:
    """A pipeline as skl2onnx writes it, with one input for each column."""
    from skl2onnx import convert_sklearn
    from skl2onnx.common.data_types import FloatTensorType, StringTensorType

    types = [(c, (StringTensorType if c in TEXTS else FloatTensorType)([None, 1])) for c in frame.columns]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return bytes(convert_sklearn(model, initial_types=types).SerializeToString())


def _torch(dynamo: bool) -> Callable[[Any, NDArray[Any], Path], NDArray[Any]]:
    """A network of torch, by its exporter or by the one before it."""

    def make(frame: Any, y: NDArray[Any], file: Path) -> NDArray[Any]:
        import torch

        rows = torch.from_numpy(frame.to_numpy(np.float32))
        torch.manual_seed(0)
        body = [torch.nn.BatchNorm1d(rows.shape[1]), torch.nn.Linear(rows.shape[1], 16), torch.nn.ReLU()]
        ends = [torch.nn.Linear(16, 2)] if dynamo else [torch.nn.Linear(16, 1), torch.nn.Sigmoid()]
        net = torch.nn.Sequential(*body, *ends)
        loss = torch.nn.CrossEntropyLoss() if dynamo else torch.nn.BCELoss()
        target = torch.from_numpy(y) if dynamo else torch.from_numpy(y.astype(np.float32))[:, None]
        best = torch.optim.Adam(net.parameters(), lr=0.02)
        for _ in range(100):
            best.zero_grad()
            loss(net(rows), target).backward()
            best.step()
        net.eval()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            if dynamo:
                shapes = ({0: torch.export.Dim("rows")},)
                torch.onnx.export(
                    net, (rows[:2],), str(file), dynamo=True, dynamic_shapes=shapes, external_data=False, verbose=False
                )
            else:
                axes = {"x": {0: "rows"}}
                torch.onnx.export(net, (rows[:2],), str(file), dynamo=False, input_names=["x"], dynamic_axes=axes)
        with torch.no_grad():
            found = net(rows).numpy()
        return np.asarray(found.argmax(axis=1) if dynamo else (found[:, 0] >= 0.5).astype(int))

    return make


def _boosted_onnx(kind: str) -> Callable[[Any, NDArray[Any], Path], NDArray[Any]]:
    """XGBoost and LightGBM through onnxmltools; CatBoost writes ONNX itself."""

    def make(frame: Any, y: NDArray[Any], file: Path) -> NDArray[Any]:
        rows = frame.to_numpy(np.float32)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            if kind == "catboost":
                import catboost

                model: Any = catboost.CatBoostClassifier(
                    iterations=40, depth=4, verbose=0, allow_writing_files=False
                ).fit(rows, y)
                model.save_model(str(file), format="onnx")
                return np.asarray(model.predict(rows))
            import onnxmltools
            from onnxmltools.convert.common.data_types import FloatTensorType

            types = [("X", FloatTensorType([None, rows.shape[1]]))]
            if kind == "xgboost":
                import xgboost

                model = xgboost.XGBClassifier(n_estimators=40, max_depth=4).fit(rows, y)
                graph = onnxmltools.convert_xgboost(model, initial_types=types)
            else:
                import lightgbm

                model = lightgbm.LGBMClassifier(n_estimators=40, num_leaves=12, verbose=-1).fit(rows, y)
                graph = onnxmltools.convert_lightgbm(model, initial_types=types)
            file.write_bytes(graph.SerializeToString())
            return np.asarray(model.predict(rows))

    return make


BOTH = "numbers and text"
SAVED: dict[str, Saved] = {
    "xgboost-json": Saved("XGBoost", ".json", "numbers", "numbers", _booster("xgboost")),
    "xgboost-ubj": Saved("XGBoost", ".ubj", "numbers", "numbers", _booster("xgboost", booster="dart", rate_drop=0.1)),
    "xgboost-json-text": Saved("XGBoost", ".json", BOTH, "both", _booster("xgboost")),
    "xgboost-ubj-text": Saved("XGBoost", ".ubj", BOTH, "both", _booster("xgboost", max_cat_to_onehot=2)),
    "xgboost-onnx": Saved("XGBoost", ".onnx", "numbers", "numbers", _boosted_onnx("xgboost")),
    "lightgbm": Saved("LightGBM", ".txt", "numbers", "numbers", _booster("lightgbm")),
    "lightgbm-text": Saved("LightGBM", ".txt", BOTH, "both", _booster("lightgbm")),
    "lightgbm-onnx": Saved("LightGBM", ".onnx", "numbers", "none", _boosted_onnx("lightgbm")),
    "catboost": Saved("CatBoost", ".cbm", "numbers", "numbers", _booster("catboost")),
    "catboost-text": Saved("CatBoost", ".cbm", BOTH, "numbers", _booster("catboost", max_ctr_complexity=1)),
    "catboost-one-hot": Saved("CatBoost", ".cbm", BOTH, "numbers", _booster("catboost", one_hot_max_size=20)),
    "catboost-together": Saved("CatBoost", ".cbm", BOTH, "numbers", _booster("catboost", max_ctr_complexity=3)),
    "catboost-onnx": Saved("CatBoost", ".onnx", "numbers", "none", _boosted_onnx("catboost")),
    **{
        f"sklearn-{ending[1:]}-{kind}": Saved("scikit-learn", ending, columns, "numbers", _sklearn(kind, ending))
        for ending, kind, columns in (
            (".skops", "logistic", BOTH),
            (".skops", "forest", BOTH),
            (".skops", "boosting", "numbers"),
            (".skops", "histogram", "numbers"),
            (".skops", "network", BOTH),
            (".onnx", "logistic", BOTH),
            (".onnx", "forest", BOTH),
            (".onnx", "boosting", BOTH),
            (".onnx", "network", BOTH),
            (".onnx", "svm", BOTH),
        )
    },
    "torch-onnx": Saved("torch", ".onnx", "numbers", "none", _torch(dynamo=True)),
    "torch-onnx-before": Saved("torch", ".onnx", "numbers", "none", _torch(dynamo=False)),
}
