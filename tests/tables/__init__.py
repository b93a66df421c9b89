"""The tables of instructions and GPUs, against recorded and published results."""
