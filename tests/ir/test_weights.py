"""Weights files: exact, mapped, reproducible, and safe to open."""

from __future__ import annotations

import io
import pickle
import random
import struct
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from bmcompiler.errors import FileFormatError
from bmcompiler.ir import DTYPES, Weights
from bmcompiler.ir.types import numpy_dtype

SHAPES = hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=4)
ARRAYS = st.sampled_from(sorted(DTYPES)).flatmap(
    lambda name: (
        hnp.arrays(np.uint16, SHAPES).map(lambda bits: bits.view(numpy_dtype("bf16")))
        if name == "bf16"
        else hnp.arrays(numpy_dtype(name), SHAPES)
    )
)
KEYS = st.text(max_size=10) | st.sampled_from(["file", "a/b:0", "..\\x", "x.npy", "100%41", "a\0b", "\udc80", "层"])


def weights_of(arrays: dict[str, np.ndarray]) -> Weights:
    weights = Weights()
    weights.update(arrays)
    return weights


@settings(max_examples=80, deadline=None)
@given(st.dictionaries(KEYS, ARRAYS, max_size=4))
def test_any_key_and_array_comes_back_as_it_was(
    tmp_path_factory: pytest.TempPathFactory, arrays: dict[str, Any]
) -> None:
    path = tmp_path_factory.mktemp("weights") / "w.npz"
    weights = weights_of(arrays)
    weights.save(path)
    loaded = Weights.load(path)
    assert list(loaded) == list(weights)
    for key, array in arrays.items():
        assert loaded[key].dtype == array.dtype and loaded[key].shape == array.shape
        assert loaded[key].tobytes() == array.tobytes()
        assert loaded.digest(key) == weights.digest(key)


def test_arrays_are_mapped_aligned_and_read_only(tmp_path: Path) -> None:
    path = tmp_path / "w.npz"
    arrays = {f"layer{i}": np.full((3, i + 1), i, np.float32) for i in range(5)}
    weights_of(arrays).save(path)
    for key, array in Weights.load(path).items():
        assert isinstance(array, np.memmap) and not array.flags.writeable
        assert array.ctypes.data % 64 == 0
        np.testing.assert_array_equal(array, arrays[key])


def test_numpy_reads_the_file_and_equal_weights_give_equal_bytes(tmp_path: Path) -> None:
    arrays = {"a": np.arange(5), "b/c": np.zeros((2, 0), np.int8)}
    first, second = tmp_path / "1.npz", io.BytesIO()
    weights_of(arrays).save(first)
    weights_of(arrays).save(second)
    assert first.read_bytes() == second.getvalue()
    with np.load(first, allow_pickle=False) as read:
        assert sorted(read.files) == ["a", "b/c"]
        np.testing.assert_array_equal(read["a"], arrays["a"])


def test_files_of_numpy_are_read(tmp_path: Path) -> None:
    path = tmp_path / "w.npz"
    fortran, swapped = np.asfortranarray(np.arange(6.0).reshape(2, 3)), np.arange(4, dtype=">i2")
    for save in (np.savez, np.savez_compressed):
        save(path, fortran=fortran, swapped=swapped, scalar=np.float32(2.5))
        loaded = Weights.load(path)
        np.testing.assert_array_equal(loaded["fortran"], fortran)
        np.testing.assert_array_equal(loaded["swapped"], [0, 1, 2, 3])
        assert loaded["swapped"].dtype == np.int16 and loaded["swapped"].dtype.isnative
        assert loaded["scalar"].shape == () and loaded["scalar"] == 2.5


def test_keys_stay_unique_and_digests_follow_changes() -> None:
    weights, array = Weights(), np.zeros(3, np.float32)
    assert weights.add("w", array) == "w" and weights.add("w", array) == "w"
    assert weights.add("w", np.ones(3, np.float32)) == "w.1"
    before = weights.digest("w")
    assert before == weights.digest("w") != weights.digest("w.1")
    weights["w"] = np.ones(3, np.float32)
    assert weights.digest("w") == weights.digest("w.1") != before
    weights["w"] = np.ones((1, 3), np.float32)
    assert weights.digest("w") != weights.digest("w.1")
    del weights["w"]
    assert list(weights) == ["w.1"] and len(weights) == 1


def npy(header: str, data: bytes = b"", version: int = 1) -> bytes:
    body = header.encode().ljust(118) + b"\n"
    return b"\x93NUMPY" + bytes([version, 0]) + struct.pack("<H" if version == 1 else "<I", len(body)) + body + data


class Bomb:
    def __reduce__(self) -> Any:
        return (pytest.fail, ("a pickle was executed",))


HOSTILE: dict[str, bytes] = {
    "pickle": npy("{'descr': '|O', 'fortran_order': False, 'shape': (1,)}", pickle.dumps([Bomb()])),
    "no array": b"hello",
    "empty member": b"",
    "pickle alone": pickle.dumps(Bomb()),
    "too little data": npy("{'descr': '<f4', 'fortran_order': False, 'shape': (5,)}", bytes(16)),
    "too much data": npy("{'descr': '<f4', 'fortran_order': False, 'shape': (3,)}", bytes(16)),
    "enormous": npy("{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999999,)}", bytes(16)),
    "negative": npy("{'descr': '<f4', 'fortran_order': False, 'shape': (-2, -2)}", bytes(16)),
    "float dimension": npy("{'descr': '<f4', 'fortran_order': False, 'shape': (4.0,)}", bytes(16)),
    "true dimension": npy("{'descr': '<f4', 'fortran_order': False, 'shape': (True,)}", bytes(4)),
    "records": npy("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (4,)}", bytes(16)),
    "text": npy("{'descr': '<U1', 'fortran_order': False, 'shape': (4,)}", bytes(16)),
    "complex": npy("{'descr': '<c8', 'fortran_order': False, 'shape': (2,)}", bytes(16)),
    "no shape": npy("{'descr': '<f4', 'fortran_order': False}", bytes(16)),
    "code": npy("__import__('os')", bytes(16)),
    "brackets": npy("(" * 110, bytes(16)),
    "version": npy("{'descr': '<f4', 'fortran_order': False, 'shape': (4,)}", bytes(16), 9),
}


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
@pytest.mark.parametrize("what", HOSTILE)
def test_hostile_members_are_refused(tmp_path: Path, what: str, method: int) -> None:
    path = tmp_path / "w.npz"
    with zipfile.ZipFile(path, "w", method) as archive:
        archive.writestr("a.npy", HOSTILE[what])
    with pytest.raises(FileFormatError, match="not a readable weights file") as caught:
        Weights.load(path)
    assert str(caught.value).startswith(str(path))


@pytest.mark.parametrize("seed", range(10))
def test_damaged_files_are_read_or_refused_cleanly(tmp_path: Path, seed: int) -> None:
    rng, path = random.Random(seed), tmp_path / "w.npz"
    weights_of({"a": np.arange(30, dtype=np.float32), "b": np.zeros((2, 3), np.int8)}).save(path)
    whole = path.read_bytes()
    for _ in range(40):
        data = bytearray(whole[: rng.randrange(len(whole))] if rng.random() < 0.3 else whole)
        for _ in range(rng.randint(0, 6)):
            if data:
                data[rng.randrange(len(data))] = rng.randrange(256)
        path.write_bytes(data)
        try:
            for array in Weights.load(path).values():
                assert array.nbytes <= len(whole)
        except FileFormatError:
            pass


def test_a_missing_file_is_an_os_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        Weights.load(tmp_path / "none.npz")
