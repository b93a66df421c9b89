"""The package as a whole: its face, its layers, its wheel."""
