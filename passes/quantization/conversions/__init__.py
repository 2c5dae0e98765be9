"""How float ops become integer ops, in words that every scheme fills (`quantization.forms`)."""
