"""Contract suites: what a third party's model (or generator) must do, as tests to inherit."""

from globece.testing.models import ModelContract

__all__ = ["ModelContract"]
