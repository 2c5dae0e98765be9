"""The bit-exact simulator of the BM1684X: decodes a program once, runs it on arrays many times."""
