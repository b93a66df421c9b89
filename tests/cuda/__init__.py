"""The device cuda: its kernels, its launch layer, the evidence that it gathers."""
