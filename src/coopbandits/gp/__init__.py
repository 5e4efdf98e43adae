"""What do I know? Gaussian process posteriors, from a growing factor or sufficient statistics."""
