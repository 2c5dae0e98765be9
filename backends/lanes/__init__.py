"""What all chips with lanes share: facts, recipes, kernels."""
