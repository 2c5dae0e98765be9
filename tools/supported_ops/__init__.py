"""What `tools/gen_supported_ops.py` is made of."""
