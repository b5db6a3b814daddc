"""Contract suites: what a third party's model (or generator) must do, as tests to inherit."""

from globece.testing.generators import GeneratorCase, GeneratorContract
from globece.testing.models import ModelCase, ModelContract

__all__ = ["GeneratorCase", "GeneratorContract", "ModelCase", "ModelContract"]
