"""Only what is known by its type is compiled; the rest is searched, and the warning says truly why."""

from __future__ import annotations

import pickle
import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer, make_column_transformer
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import (
    BaggingClassifier,
    GradientBoostingClassifier,
    HistGradientBoostingRegressor,
    IsolationForest,
    RandomForestClassifier,
    StackingClassifier,
    VotingClassifier,
)
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import (
    GammaRegressor,
    LogisticRegression,
    PoissonRegressor,
    RANSACRegressor,
    TweedieRegressor,
)
from sklearn.model_selection import FixedThresholdClassifier, GridSearchCV
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    KBinsDiscretizer,
    MinMaxScaler,
    OneHotEncoder,
    OrdinalEncoder,
    StandardScaler,
)
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

from globece import FeatureSpace, as_model, explain
from globece.errors import GlobeCEWarning

RNG = np.random.default_rng(0)
N = 400
FRAME = pd.DataFrame(
    {
        "job": RNG.choice(list("pqrst"), N),
        "home": RNG.choice(["own", "rent", "free"], N),
        "a": RNG.normal(size=N),
        "b": RNG.normal(size=N) + 4.0,
    }
)
NUMBERS = FRAME[["a", "b"]]
SCORE = FRAME["a"] + 0.5 * FRAME["b"] - 2.0 + 1.5 * ((FRAME["job"] == "q") & (FRAME["home"] == "own"))
LABEL = (SCORE > 0.5).astype(int)
COUNT = RNG.poisson(np.exp(0.3 + FRAME["a"] / 2))


def asked(model: Any, rows: pd.DataFrame, **how: Any) -> tuple[Any, list[str]]:
    """The model, and what was said about it."""
    space = FeatureSpace.from_frame(rows)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        found = as_model(model, space, rows=space.encode(rows), **how)
    return found, [str(w.message) for w in said if issubclass(w.category, GlobeCEWarning)]


def agrees(model: Any, rows: pd.DataFrame, **how: Any) -> None:
    """It is followed exactly, without a word, and nothing is favourable before it says so."""
    found, said = asked(model, rows, **how)
    assert found.exact, said
    assert not said
    searched = as_model(model, found.space, compile=False, grid=512, **how)
    Z = found.space.encode(rows)
    Z = Z[~searched.favourable(Z)][:60]
    D = np.random.default_rng(1).normal(size=(4, found.space.width))
    limit = np.full((4, len(Z)), 4.0)
    exact, grid = found.first_flip(Z, D, limit), searched.first_flip(Z, D, limit)
    assert (exact <= grid * (1 + 3e-6)).all()
    assert np.isfinite(exact).any()


def cross(A: Any) -> Any:
    A = pd.DataFrame(A)
    return ((A.iloc[:, 0] == "q") & (A.iloc[:, 1] == "own")).to_numpy().astype(float)[:, None]


def numbered(A: Any) -> Any:
    return pd.DataFrame(A).iloc[:, [0]].map("pqrst".index).to_numpy().astype(float)


def frequent(A: Any) -> Any:
    """How often a row's value occurs among the rows given: no answer about one row."""
    column = pd.DataFrame(A).iloc[:, 0]
    return column.map(column.value_counts(normalize=True)).to_numpy()[:, None]


ONE_HOT = ("one-hot", OneHotEncoder(), ["job", "home"])
SCALED = ("scaled", StandardScaler(), ["a", "b"])


def columns(*parts: Any, model: Any = None) -> Any:
    last = LogisticRegression(C=10, max_iter=2000) if model is None else model
    return make_pipeline(ColumnTransformer([*parts, SCALED]), last).fit(FRAME, LABEL)


class TestSteps:
    @pytest.mark.parametrize("rows", [400, 60])
    def test_a_step_that_crosses_two_columns_is_not_compiled(self, rows: int) -> None:
        model = columns(("crossed", FunctionTransformer(cross), ["job", "home"]), ONE_HOT)
        found, said = asked(model, FRAME.iloc[:rows])
        assert not found.exact
        assert "FunctionTransformer(cross) takes the columns ['job', 'home'] together" in said[0]

    def test_nor_inside_a_pipeline_or_a_union(self) -> None:
        step = FunctionTransformer(cross)
        for part in (make_pipeline(step, MinMaxScaler()), FeatureUnion([("x", step), ("o", OneHotEncoder())])):
            found, said = asked(columns(("crossed", part, ["job", "home"])), FRAME)
            assert not found.exact
            assert "FunctionTransformer(cross)" in said[0]

    def test_a_function_of_one_column_is_tabulated(self) -> None:
        agrees(columns(("n", FunctionTransformer(numbered), ["job"]), ("o", OneHotEncoder(), ["home"])), FRAME)

    def test_but_not_one_that_looks_at_other_rows(self) -> None:
        found, said = asked(columns(("n", FunctionTransformer(frequent), ["job"])), FRAME)
        assert not found.exact
        assert "transforms a row differently among other rows" in said[0]

    def test_words_of_one_column(self) -> None:
        agrees(columns(("words", CountVectorizer(), "home"), ("o", OneHotEncoder(), ["job"])), FRAME)

    def test_a_union(self) -> None:
        union = FeatureUnion(
            [("s", StandardScaler()), ("b", KBinsDiscretizer(4, encode="onehot-dense"))], transformer_weights={"s": 0.5}
        )
        agrees(make_pipeline(union, LogisticRegression()).fit(NUMBERS, LABEL), NUMBERS)
        encoders = FeatureUnion([("h", OneHotEncoder(sparse_output=False)), ("n", OrdinalEncoder())])
        agrees(columns(("c", encoders, ["job", "home"])), FRAME)

    def test_columns_are_found_by_name_in_another_order(self) -> None:
        by_place = ColumnTransformer([("o", OneHotEncoder(), [0, 1]), ("s", StandardScaler(), [2, 3])])
        model = make_pipeline(by_place, LogisticRegression()).fit(FRAME, LABEL)
        agrees(model, FRAME[["b", "home", "a", "job"]])

    def test_a_function_that_is_not_defined_everywhere(self) -> None:
        model = make_pipeline(FunctionTransformer(np.log), DecisionTreeClassifier(max_depth=3))
        model.fit(NUMBERS.abs() + 0.1, LABEL)
        agrees(model, NUMBERS.abs() + 0.1)
        rows = NUMBERS.abs() + 0.1
        space = FeatureSpace.from_frame(rows, ranges={"a": (-3.0, 3.0)})
        with pytest.warns(GlobeCEWarning, match="not defined for all values of 'a'"):
            as_model(model, space, rows=space.encode(rows))

    def test_a_transformer_of_the_users_with_a_known_name(self) -> None:
        class StandardScaler(MinMaxScaler):
            def transform(self, X: Any) -> Any:
                return super().transform(X) ** 2

        model = make_pipeline(StandardScaler(), LogisticRegression()).fit(NUMBERS, LABEL)
        found, said = asked(model, NUMBERS)
        assert not found.exact
        assert "overrides transform" in said[0]

    def test_sparse_zeros_are_missing_to_xgboost(self) -> None:
        xgboost = pytest.importorskip("xgboost")
        for encoder in (OneHotEncoder(sparse_output=True), OneHotEncoder(sparse_output=False)):
            part = make_column_transformer((encoder, ["job", "home"]), remainder="passthrough", sparse_threshold=1.0)
            agrees(make_pipeline(part, xgboost.XGBClassifier(n_estimators=10)).fit(FRAME, LABEL), FRAME)


class TestModels:
    @pytest.mark.parametrize("method", ["predict", "decision_function", "_predict_proba_lr", "__getattribute__"])
    def test_a_subclass_with_its_own_way_is_not_compiled(self, method: str) -> None:
        def own(self: Any, *args: Any) -> Any:
            return getattr(LogisticRegression, method)(self, *args)

        model = type("Mine", (LogisticRegression,), {method: own})().fit(NUMBERS, LABEL)
        found, said = asked(model, NUMBERS)
        assert not found.exact
        assert f"overrides {method}" in said[0]

    def test_nor_an_object_whose_method_was_replaced(self) -> None:
        model = LogisticRegression().fit(NUMBERS, LABEL)
        model.predict = lambda X: np.asarray(X)[:, 0].astype(int) % 2
        assert not asked(model, NUMBERS)[0].exact

    def test_nor_a_class_of_the_same_name(self) -> None:
        class LinearRegression:
            coef_, intercept_ = np.ones(2), 0.0

            def predict(self, X: Any) -> Any:
                return np.exp(np.asarray(X).sum(axis=1))

        found, said = asked(LinearRegression(), NUMBERS, threshold=3.0)
        assert not found.exact
        assert "is not a known class" in said[0]

    def test_a_subclass_that_changes_nothing_is(self) -> None:
        class Mine(LogisticRegression):
            """With a method more."""

            def more(self) -> int:
                return 1

        agrees(Mine().fit(NUMBERS, LABEL), NUMBERS)

    @pytest.mark.parametrize("favourable", ["above", "below"])
    @pytest.mark.parametrize(
        "model",
        [
            PoissonRegressor(alpha=0.01),
            GammaRegressor(),
            TweedieRegressor(power=1.5),
            TweedieRegressor(power=0),
            TweedieRegressor(power=0, link="log"),
        ],
        ids=str,
    )
    @pytest.mark.parametrize("rows", [20, 400])
    def test_links(self, model: Any, favourable: str, rows: int) -> None:
        model.fit(NUMBERS, COUNT + 0.5)
        level = float(np.quantile(model.predict(NUMBERS.iloc[:rows]), 0.6 if favourable == "above" else 0.4))
        agrees(model, NUMBERS.iloc[:rows], threshold=level, favourable=favourable)

    def test_a_link_that_never_comes_down_to_the_threshold(self) -> None:
        model = PoissonRegressor().fit(NUMBERS, COUNT)
        Z = NUMBERS.to_numpy()
        for threshold, favourable, all_ in ((0.0, "above", True), (-1.0, "above", True), (-1.0, "below", False)):
            found, said = asked(model, NUMBERS, threshold=threshold, favourable=favourable)
            assert found.exact
            assert not said
            assert (found.core.favourable(Z) == all_).all()
        found, said = asked(model, NUMBERS, threshold=0.0, favourable="below")
        assert not found.exact
        assert "only by rounding" in said[0]

    def test_pairs_of_classes_are_not_taken_for_classes(self) -> None:
        """Three classes have three pairs, so a linear SVC has as many rows of weights as classes."""
        model = SVC(kernel="linear").fit(NUMBERS, np.digitize(SCORE, [0.0, 1.0]))
        found, said = asked(model, NUMBERS, favourable=1)
        assert not found.exact
        assert "votes between pairs" in said[0]
        agrees(SVC(kernel="linear").fit(NUMBERS, LABEL), NUMBERS)

    def test_a_sparse_weight(self) -> None:
        agrees(LogisticRegression().fit(NUMBERS, LABEL).sparsify(), NUMBERS)

    def test_wrappers(self) -> None:
        frozen = pytest.importorskip("sklearn.frozen")
        inner = columns(ONE_HOT)
        agrees(frozen.FrozenEstimator(inner), FRAME)
        agrees(FixedThresholdClassifier(frozen.FrozenEstimator(inner), threshold=0.3).fit(FRAME, LABEL), FRAME)
        agrees(GridSearchCV(LogisticRegression(), {"C": [0.1, 1.0]}, refit=first).fit(NUMBERS, LABEL), NUMBERS)
        ransac = RANSACRegressor(random_state=0).fit(NUMBERS, SCORE)
        agrees(ransac, NUMBERS, threshold=0.5)
        agrees(CalibratedClassifierCV(LogisticRegression(), ensemble=False).fit(NUMBERS, LABEL), NUMBERS)

    def test_boosting_on_a_guess(self) -> None:
        random = DummyClassifier(strategy="uniform", random_state=0)
        model = GradientBoostingClassifier(n_estimators=5, init=random).fit(NUMBERS, LABEL)
        found, said = asked(model, NUMBERS)
        assert not found.exact
        assert "on top of DummyClassifier" in said[0]

    @pytest.mark.parametrize("loss", ["poisson", "gamma"])
    def test_histogram_boosting_with_a_link(self, loss: str) -> None:
        model = HistGradientBoostingRegressor(loss=loss, max_iter=10).fit(NUMBERS, COUNT + 0.5)
        agrees(model, NUMBERS, threshold=2.0)

    @pytest.mark.filterwarnings("ignore:lbfgs failed")
    def test_a_network_with_a_link(self) -> None:
        try:
            model = MLPRegressor(loss="poisson", hidden_layer_sizes=(4,), solver="lbfgs", max_iter=50, random_state=0)
        except TypeError:
            pytest.skip("this release of scikit-learn has no such loss")
        found, said = asked(model.fit(NUMBERS, COUNT), NUMBERS, threshold=2.0)
        assert not found.exact
        assert "'exp'" in said[0]


def first(results: Any) -> int:
    return 0


class TestCatBoost:
    catboost = pytest.importorskip("catboost")

    def model(self, kind: str = "Classifier", **params: Any) -> Any:
        how = {"iterations": 15, "depth": 3, "verbose": 0, "thread_count": 1, "allow_writing_files": False}
        return getattr(self.catboost, f"CatBoost{kind}")(**how, **params)

    @pytest.mark.parametrize("loss", ["RMSE", "Poisson", "Quantile"])
    @pytest.mark.parametrize("favourable", [None, "below"])
    def test_a_regressor(self, loss: str, favourable: str | None) -> None:
        """Its classes_ is an empty list."""
        model = self.model("Regressor", loss_function=loss).fit(NUMBERS, COUNT)
        level = float(np.quantile(model.predict(NUMBERS), 0.6 if favourable is None else 0.4))
        agrees(model, NUMBERS, threshold=level, favourable=favourable)

    @pytest.mark.parametrize("loss", ["MultiClass", "MultiClassOneVsAll"])
    @pytest.mark.parametrize("rows", [400, 40, 10])
    def test_the_probability_of_one_of_three_classes(self, loss: str, rows: int) -> None:
        model = self.model(loss_function=loss).fit(NUMBERS, np.digitize(SCORE, [0.0, 1.0]))
        agrees(model, NUMBERS.iloc[:rows], favourable=2, threshold=0.4)
        agrees(model, NUMBERS.iloc[:rows], favourable=2)

    @pytest.mark.parametrize("favourable", [0, 1])
    def test_a_threshold_of_its_own(self, favourable: int) -> None:
        model = self.model().fit(NUMBERS, LABEL)
        model.set_probability_threshold(0.7)
        agrees(model, NUMBERS, favourable=favourable)

    def test_its_own_categories(self) -> None:
        alone: tuple[dict[str, Any], ...] = ({"max_ctr_complexity": 1}, {"one_hot_max_size": 20})
        for params in alone:
            model = self.model(cat_features=["job", "home"], **params).fit(FRAME, LABEL)
            found, said = asked(model, FRAME)
            assert found.exact, said
            agrees(model, FRAME)


@pytest.mark.parametrize(
    ("model", "reason"),
    [
        (VotingClassifier([("a", columns(ONE_HOT))], voting="soft"), "VotingClassifier is compiled for hard votes"),
        (StackingClassifier([("a", columns(ONE_HOT))]), "StackingClassifier cannot be compiled"),
        (
            make_pipeline(
                ColumnTransformer([ONE_HOT, SCALED]), BaggingClassifier(LogisticRegression(), n_estimators=2)
            ),
            "BaggingClassifier averages LogisticRegressions",
        ),
    ],
    ids=["voting", "stacking", "bagging"],
)
def test_the_reason_names_what_is_not_known(model: Any, reason: str) -> None:
    found, said = asked(model.fit(FRAME, LABEL), FRAME)
    assert not found.exact
    assert reason in said[0]
    assert "text" not in said[0]


def test_an_outlier_detector_says_what_counts() -> None:
    model = IsolationForest(n_estimators=5, random_state=0).fit(NUMBERS)
    found, said = asked(model, NUMBERS)
    assert not found.exact
    assert said == [
        "IsolationForest has no classes: it is searched as a black box, and a prediction of 1 is taken as the "
        "favourable outcome"
    ]


class TestPickle:
    @pytest.mark.parametrize(
        "model",
        [
            make_pipeline(StandardScaler(), MLPClassifier((5,), max_iter=30, random_state=0)),
            make_pipeline(MinMaxScaler(clip=True), RandomForestClassifier(5, random_state=0)),
            make_pipeline(FunctionTransformer(np.exp), StandardScaler(), DecisionTreeClassifier(max_depth=3)),
            make_pipeline(KBinsDiscretizer(3), LogisticRegression()),
            Pipeline([("a", StandardScaler()), ("b", "passthrough"), ("c", LogisticRegression())]),
        ],
        ids=str,
    )
    @pytest.mark.filterwarnings("ignore:Stochastic Optimizer")
    def test_an_explanation(self, model: Any) -> None:
        self.round_trip(model.fit(NUMBERS, LABEL))

    def test_an_explanation_of_a_module(self) -> None:
        torch = pytest.importorskip("torch")
        torch.manual_seed(0)
        module = torch.nn.Sequential(torch.nn.Linear(2, 5), torch.nn.ReLU(), torch.nn.Linear(5, 2))
        self.round_trip(module)

    def round_trip(self, model: Any) -> None:
        found = explain(model, NUMBERS.iloc[:80], rng=0)
        assert found.provenance.method == "exact"
        again = pickle.loads(pickle.dumps(found))
        new = NUMBERS.iloc[80:160]
        np.testing.assert_array_equal(again.apply(new).scalars, found.apply(new).scalars)
        pd.testing.assert_frame_equal(again.counterfactuals().after, found.counterfactuals().after)
        assert again.score == found.score


class TestModules:
    torch = pytest.importorskip("torch")

    def module(self, forward: Any = None) -> Any:
        nn: Any = self.torch.nn

        class Net(nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.first, self.bend, self.last = nn.Linear(2, 6), nn.ReLU(), nn.Linear(6, 2)

            def forward(self, x: Any) -> Any:
                return self.last(self.bend(self.first(x if forward is None else forward(x))))

        self.torch.manual_seed(0)
        return Net()

    def test_a_forward_of_layers_in_order(self) -> None:
        assert asked(self.module(), NUMBERS)[0].exact

    @pytest.mark.parametrize(
        ("forward", "reason"),
        [
            (lambda x: x.clamp(-100.0, 100.0), "also uses clamp"),  # no random row would show it
            (lambda x: x if (x < 1e3).all() else -x, "cannot be traced"),
        ],
    )
    def test_a_forward_that_does_more(self, forward: Any, reason: str) -> None:
        found, said = asked(self.module(forward), NUMBERS)
        assert not found.exact
        assert reason in said[0]

    def test_hooks(self) -> None:
        module = self.module()
        module.first.register_forward_hook(lambda part, given, out: out.clamp(max=1e6))
        found, said = asked(module, NUMBERS)
        assert not found.exact
        assert "hook" in said[0]

    def test_a_layer_with_a_forward_of_its_own(self) -> None:
        module = self.module()
        module.bend.forward = lambda x: x.clamp(0.0, 1e6)
        assert not asked(module, NUMBERS)[0].exact
