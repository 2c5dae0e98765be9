"""Families of detectors: boxes and regions of interest."""
