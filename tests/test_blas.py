"""Work split over cores: the same results whatever the number of threads."""

from __future__ import annotations

import threading
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from bmcompiler.numeric import blas
from bmcompiler.numeric.blas import _controls, in_parallel, one_blas_thread
from bmcompiler.ops.layers.nn import conv2d_float


def test_pieces_all_run_and_their_errors_come_through() -> None:
    ran: list[int] = []
    in_parallel([partial(ran.append, k) for k in range(7)])
    assert sorted(ran) == list(range(7))
    with pytest.raises(ZeroDivisionError):
        in_parallel([lambda: None, lambda: ran.append(1 // 0)])


@pytest.mark.parametrize(("threads", "pieces", "here"), [(1, 1, True), (1, 5, True), (2, 1, True), (2, 5, False)])
def test_pieces_run_where_they_were_asked_for_unless_there_are_several_of_both(
    threads: int, pieces: int, here: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So a piece of one thread may be split again, which a worker that waits for itself could not."""
    monkeypatch.setattr(blas, "_available", lambda: threads)
    seen: set[threading.Thread] = set()
    in_parallel([lambda: seen.add(threading.current_thread()) for _ in range(pieces)])
    assert (seen == {threading.current_thread()}) == here and len(seen) <= threads


def test_pieces_of_a_piece_run_on_its_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    """All workers would wait for pieces that none is left to run: a proof of ViT in f16 never ended."""
    monkeypatch.setattr(blas, "_available", lambda: 2)
    threads: list[threading.Thread] = []

    def split_again() -> None:
        in_parallel([lambda: threads.append(threading.current_thread()) for _ in range(3)])
        threads.append(threading.current_thread())

    in_parallel([split_again, lambda: None])
    assert len(threads) == 4 and len(set(threads)) == 1 and threading.current_thread() not in threads


@pytest.mark.parametrize(("kernel", "groups", "size"), [(1, 1, 56), (3, 1, 56), (3, 4, 30), (1, 4, 30)])
def test_convolution_gives_the_same_bytes_on_one_core_and_on_several(kernel: int, groups: int, size: int) -> None:
    random = np.random.default_rng(3)
    x = random.standard_normal((2, 32, size, size), np.float32)
    weight = random.standard_normal((64, 32 // groups, kernel, kernel), np.float32)
    several = conv2d_float(x, weight, groups=groups)
    with one_blas_thread:
        one = conv2d_float(x, weight, groups=groups)
    assert several.tobytes() == one.tobytes()


_MAPS = Path("/proc/self/maps")


@pytest.mark.skipif(not _MAPS.exists() or "openblas" not in _MAPS.read_text(), reason="no OpenBLAS is loaded here")
def test_blas_has_one_thread_until_the_last_user_leaves() -> None:
    controls = _controls()
    assert controls is not None
    get, put = controls
    before = get()
    try:
        put(2)
        with one_blas_thread:
            with one_blas_thread:
                assert get() == 1
            assert get() == 1
        assert get() == 2
    finally:
        put(before)
