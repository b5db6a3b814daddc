"""The paper's four datasets, preprocessed as in its experiments."""

from globece.datasets._compas import load_compas
from globece.datasets._dataset import Dataset
from globece.datasets._default_credit import load_default_credit
from globece.datasets._german_credit import load_german_credit
from globece.datasets._heloc import load_heloc

__all__ = ["Dataset", "load_compas", "load_default_credit", "load_german_credit", "load_heloc"]
