"""Proofs that two models are equal: in stages, and confirmed by a second engine."""
