"""Passes that serve this chip alone: source nets whose weights are its integers already."""
