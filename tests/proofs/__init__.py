"""Proofs: equality, properties, error bounds."""
