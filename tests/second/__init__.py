"""A second statement of rules about nodes, loops, rewriting, rises and signs, over plain data, as an oracle: it was
written from the docstrings of the rules, and shares no code with them."""
