"""Claims about algorithms, error bounds and overflow: verified, refuted by an input, or unknown."""
