"""The subjects of statements: inputs of models, claims and designs, and the steps of plans."""
