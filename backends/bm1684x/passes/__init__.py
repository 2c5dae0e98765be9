"""Passes that serve this chip alone: which numbers its 16-bit floats do not hold."""
