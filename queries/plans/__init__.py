"""Plans of whole matrix products: proved equal, distinguished by an input, or identified from a library's results."""
