"""Declared soon."""
