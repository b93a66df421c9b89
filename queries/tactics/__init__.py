"""What looks for proofs: it can only call rules of the kernel, and is not trusted."""
