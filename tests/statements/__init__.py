"""No false statement is called true: statements at random and by hand, with their truth."""
