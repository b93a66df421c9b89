"""Checking certificates, from their folders alone."""
