"""Instructions of NVIDIA's GPUs as devices: CUDA code, its compiler, its launches."""
