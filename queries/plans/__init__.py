"""Plans of whole matrix products: proved equal, told apart, found from a library's results."""
