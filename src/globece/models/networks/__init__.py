"""Networks of affine maps and bends: read, laid out, and followed exactly."""
