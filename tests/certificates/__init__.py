"""Certificates of every kind: written, checked, changed, forged."""
