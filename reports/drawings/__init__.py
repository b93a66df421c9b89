"""Drawings as shapes, and their writers as SVG, PDF and TikZ."""
