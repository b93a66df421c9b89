"""Devices: programs, functions, recordings, processors; runs of questions on them."""
