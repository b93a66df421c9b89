"""Files that are read: what they hold, and what is wrong with them."""
