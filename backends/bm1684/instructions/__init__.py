"""The instructions of the BM1684 as typed functions, which know the bytes that a command reads and writes."""
