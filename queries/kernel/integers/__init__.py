"""Rules of integers: sums that do not wrap, slices, residues, scale factors, rows."""
