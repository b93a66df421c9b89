"""What the steps of one evaluation do."""
