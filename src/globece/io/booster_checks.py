"""Whether a booster's file is what it says: checked before its native reader, which trusts it, gets the bytes."""

from __future__ import annotations

import json
import re
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from globece.errors import FileFormatError

CHILDREN = ("left_children", "right_children")
MOST = 1 << 31
UNTRAINED = 1000  # most outputs of a model without trees


def check_xgboost(document: dict[str, Any], file: Path) -> None:
    """Raise :class:`FileFormatError` where the trees of an XGBoost model are no trees."""
    try:
        _xgboost(document)
    except _Unlike as why:
        raise FileFormatError(f"{file} is not a whole XGBoost model: {why}") from None
    except (KeyError, TypeError, ValueError, IndexError, AttributeError, OverflowError) as error:
        raise FileFormatError(f"{file} is not a whole XGBoost model: {type(error).__name__} {error}") from error


class _Unlike(Exception):
    """What is wrong with a file."""


def _xgboost(document: dict[str, Any]) -> None:
    learner = document["learner"]
    params = learner["learner_model_param"]
    n_features, n_classes = int(params["num_feature"]), int(params["num_class"])
    n_targets = int(params.get("num_target", "1"))
    if not (0 <= n_features < MOST and 0 <= n_classes < MOST and 0 <= n_targets < MOST):
        raise _Unlike(f"{n_features} features, {n_classes} classes and {n_targets} targets")
    str(learner["objective"]["name"])
    for name in ("feature_names", "feature_types"):
        listed = learner.get(name, [])
        if len(listed) not in (0, n_features) or not all(isinstance(v, str) for v in listed):
            raise _Unlike(f"{name} has {len(listed)} entries for {n_features} features")
    booster = learner["gradient_booster"]
    if booster["name"] == "gblinear":
        n_weights = len(booster["model"]["weights"])
        if n_weights != (n_features + 1) * max(1, n_classes):
            raise _Unlike(f"{n_weights} weights for {n_features} features")
        return
    if booster["name"] not in ("gbtree", "dart"):
        raise _Unlike(f"booster {booster['name']!r}")
    model = booster.get("gbtree", booster)["model"]
    trees, info = model["trees"], np.asarray(model["tree_info"])
    if int(model["gbtree_model_param"]["num_trees"]) != len(trees) or len(info) != len(trees):
        raise _Unlike(f"{len(trees)} trees, {len(info)} entries in tree_info")
    outputs = max(1, n_classes, n_targets)
    widest = max((int(tree["tree_param"].get("size_leaf_vector", "1")) for tree in trees), default=1)
    if outputs > (len(trees) * max(1, widest) or UNTRAINED):  # XGBoost reserves memory for each that is claimed
        raise _Unlike(f"{outputs} outputs of {len(trees)} trees")
    if len(info) and not 0 <= info.min() <= info.max() < outputs:
        raise _Unlike(f"trees of output {info.max()} among {outputs}")
    ends = np.asarray(model.get("iteration_indptr", [0, len(trees)]))
    if len(ends) and (ends[0] != 0 or ends[-1] != len(trees) or (np.diff(ends) < 0).any()):
        raise _Unlike("iteration_indptr does not count the trees")
    if len(booster.get("weight_drop", trees)) != len(trees):
        raise _Unlike("weight_drop does not count the trees")
    _check_categories(model.get("cats"), n_features)
    for i, tree in enumerate(trees):
        _check_tree(i, tree, n_features)


def _check_tree(i: int, tree: dict[str, Any], n_features: int) -> None:
    n = int(tree["tree_param"]["num_nodes"])
    wide = int(tree["tree_param"].get("size_leaf_vector", "1")) > 1
    if int(tree["tree_param"].get("num_feature", n_features)) != n_features:
        raise _Unlike(f"tree {i} has {tree['tree_param']['num_feature']} features")
    left, right, parents = (np.asarray(tree[name]) for name in (*CHILDREN, "parents"))
    index = np.asarray(tree["split_indices"])
    names = ["right_children", "parents", "split_indices", "default_left"]
    names += [] if wide else ["split_conditions", "base_weights"]
    if n < 1 or len(left) != n or any(len(tree[name]) != n for name in names):
        raise _Unlike(f"tree {i} has {n} nodes and lists of other lengths")
    if any(part.dtype.kind not in "iu" for part in (left, right, parents, index)):
        raise _Unlike(f"tree {i} has nodes that are not whole numbers")
    seen, here = np.zeros(n, dtype=bool), np.zeros(1, dtype=np.int64)
    while here.size:  # nodes that were pruned are not reached
        if seen[here].any() or len(np.unique(here)) != len(here):
            raise _Unlike(f"tree {i} is no tree")
        seen[here] = True
        inner = here[left[here] != -1]
        leaf = right[here[left[here] == -1]]  # a leaf of several outputs has an index there
        half = (leaf >= n).any() if wide else (leaf != -1).any()
        if half or (index[inner] < 0).any() or (index[inner] >= n_features).any():
            raise _Unlike(f"tree {i} splits a feature that there is not, or has half a split")
        below = np.concatenate([left[inner], right[inner]]).astype(np.int64)
        if (below < 1).any() or (below >= n).any() or (parents[below] != np.r_[inner, inner]).any():
            raise _Unlike(f"tree {i} has nodes with another parent")
        here = below
    _check_category_splits(i, tree, n)


def _check_category_splits(i: int, tree: dict[str, Any], n: int) -> None:
    names = ("categories_nodes", "categories_segments", "categories_sizes", "categories")
    nodes, begin, size, values = (np.asarray(tree.get(name, []), dtype=np.float64) for name in names)
    if not len(nodes) == len(begin) == len(size):
        raise _Unlike(f"tree {i} lists its splits by category in three lengths")
    within = (nodes >= 0) & (nodes < n) & (begin >= 0) & (size >= 0) & (begin + size <= len(values))
    kinds = np.asarray(tree.get("split_type", np.zeros(n)))
    if not within.all() or (np.diff(nodes) <= 0).any() or len(kinds) != n or not np.isin(kinds, (0, 1)).all():
        raise _Unlike(f"tree {i} has a split by category of a node that there is not")
    if int((kinds == 1).sum()) != len(nodes) or (len(nodes) and (kinds[nodes.astype(np.int64)] != 1).any()):
        raise _Unlike(f"tree {i} has splits by category without their categories")
    if len(values) and not (values.min() >= 0 and values.max() < 2**24):
        raise _Unlike(f"tree {i} splits by a category that cannot be numbered")


def _check_categories(cats: Any, n_features: int) -> None:
    """The categories that XGBoost 3.1 and later keep in the model."""
    if cats is None:
        return
    encodings, ends, index = cats["enc"], np.asarray(cats["feature_segments"]), np.asarray(cats["sorted_idx"])
    if len(encodings) not in (0, n_features):
        raise _Unlike(f"categories of {len(encodings)} features")
    counts = []
    for one in encodings:
        values, offsets = np.asarray(one["values"]), np.asarray(one.get("offsets", []))
        if len(offsets) and (offsets[0] != 0 or offsets[-1] != len(values) or (np.diff(offsets) < 0).any()):
            raise _Unlike("names of categories that overlap")
        counts.append(len(offsets) - 1 if len(offsets) else len(values))
    expected = np.cumsum([0, *counts])
    if encodings and not np.array_equal(ends, expected):
        raise _Unlike("categories that are not counted")
    if len(index) != int(expected[-1]):
        raise _Unlike("categories that are not sorted")
    for a, b in pairwise(expected.tolist()):
        if not np.array_equal(np.sort(index[a:b]), np.arange(b - a)):
            raise _Unlike("categories that are not sorted")


# -- LightGBM ---------------------------------------------------------------------------------------------------------


def check_lightgbm(text: str, file: Path) -> dict[str, str]:
    """The header of a LightGBM model; raise :class:`FileFormatError` where its trees are no trees."""
    try:
        return _lightgbm(text)
    except _Unlike as why:
        raise FileFormatError(f"{file} is not a whole LightGBM model: {why}") from None
    except (KeyError, ValueError, IndexError, OverflowError) as error:
        raise FileFormatError(f"{file} is not a whole LightGBM model: {type(error).__name__} {error}") from error


def _fields(block: str) -> dict[str, str]:
    return dict(line.partition("=")[::2] for line in block.splitlines() if "=" in line)


def _lightgbm(text: str) -> dict[str, str]:
    if not text.startswith("tree\n") or "\nend of trees" not in text:
        raise _Unlike("it must go from 'tree' to 'end of trees'")
    start, *blocks = text.partition("\nend of trees")[0].split("\nTree=")
    header = _fields(start)
    n = int(header["max_feature_idx"]) + 1
    if not 0 < n < MOST:
        raise _Unlike(f"it has {n} features")
    for name in ("feature_names", "feature_infos"):
        if len(header[name].split(" ")) != n:
            raise _Unlike(f"{name} has {len(header[name].split(' '))} entries for {n} features")
    per_round, n_classes = int(header["num_tree_per_iteration"]), int(header["num_class"])
    if per_round < 1 or n_classes < 1 or len(blocks) % per_round:
        raise _Unlike(f"it has {len(blocks)} trees, {per_round} in each round")
    if "tree_sizes" in header and len(header["tree_sizes"].split()) != len(blocks):
        raise _Unlike(f"it has {len(blocks)} trees, and says {len(header['tree_sizes'].split())}")
    if "tree_sizes" in header:
        _check_sizes(text, header["tree_sizes"], len(blocks))
    for i, block in enumerate(blocks):
        number, _, rest = block.partition("\n")
        if int(number) != i:
            raise _Unlike(f"tree {i} is called {number}")
        _check_numbers(i, _fields(rest))
        _check_leaves(i, _fields(rest), n)
    return header


def _check_sizes(text: str, sizes: str, n_trees: int) -> None:
    """Each tree must begin where the sizes of those before it say."""
    raw = text.encode()
    at = raw.find(b"\nTree=") + 1
    for i, size in enumerate(map(int, sizes.split())):
        if size < 1 or not raw.startswith(b"Tree=%d\n" % i, at):
            raise _Unlike(f"tree {i} of {n_trees} does not begin where tree_sizes says")
        at += size
    if not raw[at:].lstrip(b"\n").startswith(b"end of trees"):
        raise _Unlike("its trees do not end where tree_sizes says")


WHOLE = re.compile(r"-?\d{1,18}")
NUMBER = re.compile(r"-?(\d{1,20}(\.\d{1,30})?(e[-+]?\d{1,4})?|inf|nan)")
# Numbers of a tree: so many for n leaves; LightGBM ends the process over one that it cannot read.
LEAVES, SPLITS = 0, -1
WHOLES = {"split_feature": SPLITS, "decision_type": SPLITS, "left_child": SPLITS, "right_child": SPLITS}
WHOLES |= {"leaf_count": LEAVES, "internal_count": SPLITS}
NUMBERS = {"threshold": SPLITS, "split_gain": SPLITS, "leaf_value": LEAVES, "leaf_weight": LEAVES}
NUMBERS |= {"internal_value": SPLITS, "internal_weight": SPLITS, "leaf_const": LEAVES}
SINGLE = ("num_leaves", "num_cat", "is_linear")
FREE = ("cat_boundaries", "cat_threshold", "num_features", "leaf_features", "leaf_coeff", "shrinkage")


def _check_numbers(i: int, fields: dict[str, str]) -> None:
    n = int(fields["num_leaves"])
    for name, text in fields.items():
        words = text.split(" ") if text else []
        if name in SINGLE:
            words, kind, expected = [text], WHOLE, 1
        elif name in WHOLES:
            kind, expected = WHOLE, n + WHOLES[name]
        elif name in NUMBERS:
            kind, expected = NUMBER, n + NUMBERS[name]
        elif name in FREE:
            words = text.split()
            kind, expected = NUMBER, len(words)
        else:
            raise _Unlike(f"tree {i} has {name!r}, which no tree has")
        if words and len(words) != expected and not (n == 1 and name not in SINGLE):
            raise _Unlike(f"tree {i} has {n} leaves and {len(words)} numbers in {name}")
        odd = next((word for word in words if not kind.fullmatch(word)), None)
        if odd is not None:
            raise _Unlike(f"tree {i} has {odd[:40]!r} in {name}, which is no number")


def _check_leaves(i: int, fields: dict[str, str], n_features: int) -> None:
    n, n_cat = int(fields["num_leaves"]), int(fields["num_cat"])
    if n < 1 or n_cat < 0:
        raise _Unlike(f"tree {i} has {n} leaves")
    if len(fields["leaf_value"].split()) != n:
        raise _Unlike(f"tree {i} has {n} leaves and {len(fields['leaf_value'].split())} values")
    if int(fields.get("is_linear", "0")):
        counts = [int(c) for c in fields["num_features"].split()]
        used = [int(c) for c in fields["leaf_features"].split()]
        if len(counts) != n or sum(counts) != len(used) or any(not 0 <= c < n_features for c in used):
            raise _Unlike(f"tree {i} has linear leaves over features that there are not")
    if n == 1:
        return
    lists = {name: np.array(fields[name].split(), dtype=float) for name in (
        "split_feature", "threshold", "decision_type", "left_child", "right_child")}  # fmt: skip
    if any(len(part) != n - 1 for part in lists.values()):
        raise _Unlike(f"tree {i} has {n} leaves and lists of other lengths than {n - 1}")
    feature, left, right, kind = (
        lists[name].astype(np.int64) for name in ("split_feature", "left_child", "right_child", "decision_type")
    )
    if feature.min() < 0 or feature.max() >= n_features:
        raise _Unlike(f"tree {i} splits a feature that there is not")
    children = np.concatenate([left, right])
    if (np.sort(children) != np.r_[np.arange(-n, 0), np.arange(1, n - 1)]).any():
        raise _Unlike(f"tree {i} is no tree")
    reached, here = 0, np.zeros(1, dtype=np.int64)
    while here.size:
        reached += here.size
        here = np.concatenate([left[here], right[here]])
        here = here[here >= 0]
    if reached != n - 1:
        raise _Unlike(f"tree {i} goes round in a circle")
    by_category = (kind & 1).astype(bool)
    if by_category.any() or n_cat:
        ends = np.array(fields["cat_boundaries"].split(), dtype=np.int64)
        bits = np.array(fields["cat_threshold"].split(), dtype=np.int64)
        which = lists["threshold"][by_category]
        if len(ends) != n_cat + 1 or ends[0] != 0 or (np.diff(ends) < 0).any() or ends[-1] != len(bits):
            raise _Unlike(f"tree {i} has sets of categories that overlap")
        if which.size and not (0 <= which.min() <= which.max() < n_cat and (which == np.rint(which)).all()):
            raise _Unlike(f"tree {i} splits by a set of categories that there is not")


PARAMETER = re.compile(r"\[\w+: [^\[\]\n]*\]")


def rewritten(text: str) -> str:
    """A checked model without what follows its trees, except parameters and categories that are well formed."""
    trees, _, rest = text.partition("\nend of trees")
    inside = rest.partition("\nparameters:\n")[2].partition("\nend of parameters")[0]
    parameters = [line for line in inside.split("\n") if PARAMETER.fullmatch(line)]
    categories = "null"
    for line in rest.split("\n"):
        if line.startswith("pandas_categorical:"):
            categories = json.dumps(json.loads(line.partition(":")[2]))
    ends = ["end of trees", "", "feature_importances:", "", "parameters:", *parameters, "", "end of parameters", ""]
    return "\n".join([trees, *ends, f"pandas_categorical:{categories}", ""])


# -- CatBoost ---------------------------------------------------------------------------------------------------------


def check_catboost(raw: bytes, file: Path) -> None:
    """Raise :class:`FileFormatError` where a file is not framed as CatBoost's; CatBoost verifies the rest itself."""
    if raw[:4] != b"CBM1":
        raise FileFormatError(
            f"{file} is not a CatBoost model: it does not begin with CBM1; save one with "
            f"model.save_model({file.name!r})"
        )
    size = int.from_bytes(raw[4:8], "little")
    if len(raw) < 8 + size or size < 4:
        raise FileFormatError(f"{file} is not a whole CatBoost model: it says {size:,} bytes and has {len(raw):,}")
