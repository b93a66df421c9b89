"""Pictures: what is drawn, and the files that hold it."""
