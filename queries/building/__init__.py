"""Building a unit from a device's answers, without a family of candidates."""
