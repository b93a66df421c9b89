"""Every condition of a unit's datapath, with vectors that reach it, or the proof that none does."""
