"""Sophon BM1880: 32 lanes of 64 KiB, int8, one tensor unit and one DMA engine."""
