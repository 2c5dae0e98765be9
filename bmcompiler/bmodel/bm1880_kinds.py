"""How the two kinds of BM1880 model file are told apart (bm1880.md 10.1, 10.3)."""

from bmcompiler.bmodel.container import Container


def _is_current(data: memoryview) -> bool:
    return bytes(data[:4]) in (b"\xdd\xaa\x55\xff", b"\xff\xaa\x55\xff")


def _is_json(data: memoryview) -> bool:
    return bytes(data[4:64]).lstrip()[:1] == b"{"


CURRENT = Container("bm1880", "BM1880 model", _is_current, "bmcompiler.bmodel.bm1880")
JSON = Container("bm1880-json", "BM1880 model of SDK 0.1 (JSON header)", _is_json, "bmcompiler.bmodel.bm1880_json")
