"""What operators mean, as TensorOps: one file per family of the vendor's page, found by `registry`."""
