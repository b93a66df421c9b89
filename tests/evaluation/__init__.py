"""One arithmetic in several carriers: arrays, generated C, terms of solvers, matrices."""
