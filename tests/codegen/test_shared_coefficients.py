"""Coefficients of several programs: what they have in common is there once."""

import numpy as np

from bmcompiler.codegen.coefficients import Coefficients
from bmcompiler.ir import Module
from bmcompiler.ops.builder import Builder


def _module(**arrays: np.ndarray) -> tuple[Module, dict[str, object]]:
    b = Builder.new("net")
    values = {name: b.weight(array, name) for name, array in arrays.items()}
    return b.module, values


def test_equal_bytes_of_other_programs_are_shared_whatever_they_are_called() -> None:
    large = np.arange(64, dtype=np.float32)
    first, a = _module(w=large, own=np.full(5, 7, np.float32))
    second, b = _module(v=large, w=large[:32] + 1, begins=large[:32])
    one = Coefficients(first)
    offset, _ = one.place(a["w"], "plain", np.copy), one.place(a["own"], "plain", np.copy)
    other = Coefficients(second, before=one)
    assert other.place(b["v"], "plain", np.copy) == offset
    assert other.place(b["begins"], "plain", np.copy) == offset
    different = other.place(b["w"], "plain", np.copy)
    blob = one.blob()
    assert blob is other.blob()
    assert len(blob) == one.size == 256 + 32 + 128
    assert np.array_equal(np.frombuffer(blob, np.float32, 32, different), large[:32] + 1)


def test_a_program_alone_keeps_its_constants_apart() -> None:
    array = np.arange(8, dtype=np.float32)
    module, values = _module(a=array, b=array)
    alone = Coefficients(module)
    assert alone.place(values["a"], "plain", np.copy) != alone.place(values["b"], "plain", np.copy)
    assert len(alone.blob()) == 64


def test_what_many_tiles_read_is_made_once() -> None:
    """The places that elements count from are as large as the indices: making them for each tile takes minutes."""
    made: list[bytes] = []

    def make() -> bytes:
        made.append(bytes(range(48)))
        return made[-1]

    coefficients = Coefficients(Module())
    found = {coefficients.once(("places", 3), make) for _ in range(5)}
    assert len(made) == 1 and found == {coefficients.constant(made[0])} == {coefficients.once("another", make)}
