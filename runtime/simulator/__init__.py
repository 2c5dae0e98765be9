"""Simulators that execute command buffers, with timing, race check and trace over the same commands."""
