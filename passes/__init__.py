"""IR to IR, independent of the target: one file per pass."""
