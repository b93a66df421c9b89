"""Properties of one model: order of products, signs, addition of zeros, monotonicity, error bounds."""
