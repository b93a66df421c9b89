"""Units as expressions of nodes, and units of processors."""
