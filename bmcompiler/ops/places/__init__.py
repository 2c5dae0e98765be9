"""Families about where elements lie: moved, picked, ordered, resampled, cut into bands."""
