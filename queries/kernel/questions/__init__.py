"""What statements are about: inputs of models, claims and designs, and the steps of plans."""
