"""Error of algorithms at scale: the curves of papers on the bit-exact models. Imports smtmodel alone."""
