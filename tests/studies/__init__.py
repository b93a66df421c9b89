"""Studies of errors over sizes, and errors that papers published."""
