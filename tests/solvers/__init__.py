"""Solvers: their processes, pools and clusters, and the store of their answers."""
