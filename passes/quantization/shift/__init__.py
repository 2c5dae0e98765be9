"""Power-of-two shifts (bm1880.md 11.2): a tensor of bytes has a threshold, a layer one right shift."""
