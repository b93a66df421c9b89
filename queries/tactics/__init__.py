"""Tactics look for proofs: they can only call rules of the kernel, and are not trusted."""
