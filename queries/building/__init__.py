"""A unit built from a device's answers, of which nothing was known."""
