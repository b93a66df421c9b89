"""`identify`: families, separating sets, units and plans that are built from answers."""
