"""What the kernels for NVIDIA GPUs share."""
