"""Two devices distinguished, and what changed between two evaluations."""
