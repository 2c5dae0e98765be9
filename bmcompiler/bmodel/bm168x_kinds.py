"""How BM168x model files are recognised (bm1684.md 10)."""

from bmcompiler.bmodel.container import Container


def _is_bm168x(data: memoryview) -> bool:
    return bytes(data[:4]) == b"\xee\xaa\x55\xff"


CURRENT = Container("bm1684", "BM168x model", _is_bm168x, "bmcompiler.bmodel.bm168x")
