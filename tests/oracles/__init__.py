"""What results are compared with: exact rationals and evaluators that share no code with the package."""
