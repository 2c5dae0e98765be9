"""Bit-field tables of instruction sets, and their assembly language."""
