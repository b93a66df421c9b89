"""Products in PyTorch and JAX; skipped where these are not installed (make test-torch installs PyTorch)."""
