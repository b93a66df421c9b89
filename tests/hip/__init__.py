"""HIP kernels and devices, without a GPU."""
