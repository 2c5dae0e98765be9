"""Real scales (bm1684.md 7.2): a tensor has an element type, a scale and a zero point, a layer one of three modes."""
