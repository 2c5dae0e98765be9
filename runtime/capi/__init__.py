"""The C libraries of this package: what their C types stand for in Python."""
