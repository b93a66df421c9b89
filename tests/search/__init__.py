"""Inputs that are searched for: distinguishing, covering, admitted."""
