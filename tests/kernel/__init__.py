"""Theorems, their log, what is believed of them, and the second statement of the rules."""
