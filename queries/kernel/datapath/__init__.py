"""Lemmas about parts of the datapath: alignments, products and roundings."""
