"""Rules of sign symmetry, monotonicity and properties of several problems."""
