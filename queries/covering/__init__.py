"""The conditions of a unit's datapath: for each a vector that reaches it, or a proof that no input does."""
