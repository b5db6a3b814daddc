"""Linear models, followed exactly."""
