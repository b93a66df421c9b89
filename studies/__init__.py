"""Studies of the errors of algorithms at large sizes: the curves of papers, computed with the models."""
