"""The BM1684X: 64 lanes of 256 KiB, commands of variable length, integers and floats of all widths (bm1684x.md)."""
