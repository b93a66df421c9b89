"""Plans: products of matrices by them, their theorems, the plans of libraries."""
