"""Families of candidates: their classes, what tells them apart, and which one a device is."""
