"""Calls of TPUKernel with drawn arguments, recorded on the vendor's C model."""
