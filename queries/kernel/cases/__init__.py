"""Cases that a unit meets on its inputs, and those that no input reaches."""
