"""Simulated DV device: runs raw commands on device memory."""
