"""The order of a sum, revealed from answers."""
