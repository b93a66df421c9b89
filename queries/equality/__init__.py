"""Two models are equal: proved in stages, and confirmed by a second engine."""
