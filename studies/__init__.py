"""Error of algorithms at scale: the curves of papers on the models. Imports smtmodel alone."""
