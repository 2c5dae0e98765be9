"""A compilation proves its program before it is written: the device's commands and `evaluate` give the same bits."""
