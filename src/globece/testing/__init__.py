"""Contract suites: tests to inherit for third-party models and generators."""

from globece.testing.generators import GeneratorCase, GeneratorContract
from globece.testing.models import ModelCase, ModelContract

__all__ = ["GeneratorCase", "GeneratorContract", "ModelCase", "ModelContract"]
