"""What SUPPORTED_OPS.md is made of."""
