"""Rules of error bounds."""
