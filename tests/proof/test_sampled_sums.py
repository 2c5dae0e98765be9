"""Where the chip's order of float sums would take too long, a proof samples it: what it says and still finds."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bmcompiler
from bmcompiler.errors import WrongProgramError
from bmcompiler.ir import Module, TensorType
from bmcompiler.numeric.sampled import ONE_IN, chosen, real_sums, sampled, sampled_sums
from bmcompiler.ops.builder import Builder
from bmcompiler.proof import cost, prove
from bmcompiler.report.summary import summary
from bmcompiler.runtime.simulator.bm1684 import windows as windows_1684
from bmcompiler.runtime.simulator.bm1684x.cube import conv as conv_1684x
from bmcompiler.runtime.simulator.bm1684x.cube import pool as pool_1684x

MODES = (("bm1684x", "f16"), ("bm1684x", "bf16"), ("bm1684x", "f32"), ("bm1684", "f32"))
SAID = f"program = evaluate, every bit; of float sums, one row in {ONE_IN} in the chip's order (drawn"


def net(rows: int = 40, products: bool = True) -> Module:
    """Convolutions of 100 channels in tiles, one with holes, a deconvolution, a depthwise one, products of matrices."""
    rng = np.random.default_rng(0)

    def weight(b: Builder, *shape: int) -> Any:
        return b.weight(rng.normal(0, 1 / np.sqrt(np.prod(shape[1:])), shape).astype(np.float32), f"w{shape}")

    b = Builder.new("net")
    x = b.input("x", TensorType((2, 6, rows, 24)))
    with b.at("first"):
        bias = b.weight(rng.normal(0, 1, 100).astype(np.float32), "bias")
        y = b.relu(b.conv(x, weight(b, 100, 6, 3, 3), bias, pads=(1, 1, 1, 1)))
    with b.at("pool"):
        y = b.max_pool(y, kernel=(2, 2), strides=(2, 2))
    with b.at("wide"):
        y = b.relu(b.conv(y, weight(b, 160, 100, 3, 3), pads=(2, 2, 2, 2), dilations=(2, 2)))
    with b.at("depthwise"):
        y = b.conv(y, weight(b, 160, 1, 3, 3), pads=(1, 1, 1, 1), group=160)
    with b.at("up"):
        y = b.deconv(y, weight(b, 160, 40, 2, 2), strides=(2, 2))
    if not products:
        return b.outputs([y], ["y"])
    with b.at("rows"):
        y = b.reshape(y, shape=(2, 40, rows * 24))
        scores = b.softmax(b.matmul(y, b.permute(y, order=(0, 2, 1))), axis=2)
        y = b.matmul(scores, y)
    return b.outputs([y], ["y"])


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> None:
    """All sums in order are expected to take too long, sampled ones not."""
    monkeypatch.setattr(cost, "expected_seconds", lambda *_, sampled=False: 0.0 if sampled else 100.0)


@pytest.mark.usefixtures("slow")
@pytest.mark.parametrize(("target", "precision"), MODES)
def test_a_right_program_is_right_and_says_what_was_sampled(target: str, precision: str, tmp_path: Path) -> None:
    # products of f32 are convolutions in programs alone, so that one is asked again with all of its sums
    result = bmcompiler.compile_module(net(products=precision != "f32"), target=target, quantize=precision)
    assert SAID in " ".join(summary(result).split())
    result.report(tmp_path / "report.json")
    assert json.loads((tmp_path / "report.json").read_text())["checked"]["one_row_in"] == ONE_IN
    assert not sampled(), "only the proof samples"


@pytest.mark.usefixtures("slow")
def test_who_asks_for_a_proof_gets_all_of_it() -> None:
    for check in ("always", 1):
        proof = bmcompiler.compile_module(net(), target="bm1684x", quantize="f16", check=check).checked  # type: ignore[arg-type]
        assert (
            proof is not None and proof.one_row_in == 1 and str(proof).startswith("1 sample: program = evaluate, every")
        )


def _forgets_a_corner(monkeypatch: pytest.MonkeyPatch) -> None:
    """Max pooling keeps the last row of its memory as it was."""
    for module, name in ((windows_1684, "_max_pooling"), (pool_1684x, "_largest")):
        right = getattr(module, name)

        def wrong(ops: Any, *rest: Any, right: Callable[..., Any] = right) -> Callable[[], None]:
            step, fields = right(ops, *rest), ops.fields
            return lambda: None if fields["res0_n"] and fields["res0_w"] == 12 and fields["res0_c"] == 100 else step()

        monkeypatch.setattr(module, name, wrong)


def _reads_other_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    """Convolutions of many channels take two channels' kernels for each other's."""
    for module in (windows_1684, conv_1684x):
        right = module._kernel

        def wrong(*args: Any, right: Callable[..., Any] = right) -> Callable[[], Any]:
            read = right(*args)

            def swapped() -> Any:
                kernel = np.array(read())
                axis = int(np.argmax(np.array(kernel.shape) >= 100)) if max(kernel.shape) >= 100 else -1
                return kernel if axis < 0 else np.roll(kernel, 1, axis)

            return swapped

        monkeypatch.setattr(module, "_kernel", wrong)


def _adds_in_another_order(monkeypatch: pytest.MonkeyPatch) -> None:
    """Groups of half the size, and accumulators that take turns the other way."""
    halves = [16, 16]
    right, sums = conv_1684x.group_sizes, conv_1684x.two_sums

    def group_sizes(channels: int, taps: int) -> list[int]:
        return [size for group in right(channels, taps) for size in (halves if group == 32 else [group])]

    def turned(a: Any, b: Any, bias: Any, old: Any = None) -> Any:
        return sums(np.ascontiguousarray(a[::-1]), np.ascontiguousarray(b[::-1]), bias, old)

    monkeypatch.setattr(conv_1684x, "group_sizes", group_sizes)
    monkeypatch.setattr(conv_1684x, "two_sums", turned)


FAULTS = (
    *((_forgets_a_corner, *mode) for mode in MODES),
    *((_reads_other_weights, *mode) for mode in MODES),
    (_adds_in_another_order, "bm1684x", "f16"),  # of bf16 hardly a result of a small net depends on the order,
    (_adds_in_another_order, "bm1684x", "f32"),  # and both executions of a BM1684 share the function that adds
)


@pytest.mark.usefixtures("slow")
@pytest.mark.parametrize(("fault", "target", "precision"), FAULTS)
def test_faults_are_found(
    fault: Callable[[pytest.MonkeyPatch], None], target: str, precision: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    fault(monkeypatch)
    with pytest.raises(WrongProgramError, match="the program is not what the network means"):
        bmcompiler.compile_module(net(), target=target, quantize=precision)


@pytest.mark.usefixtures("slow")
def test_what_differs_in_sampled_sums_alone_is_decided_by_all_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """Real sums that lie next to a border may be rounded in two ways: that is no error."""
    right = prove.difference

    def nervous(*args: Any) -> list[Any]:
        return [prove.Wrong("y", 1, 1)] if sampled() else right(*args)

    monkeypatch.setattr(prove, "difference", nervous)
    proof = bmcompiler.compile_module(net(), target="bm1684x", quantize="f16").checked
    assert proof is not None and proof.samples == 1 and proof.one_row_in == 1


def test_rows_are_chosen_by_what_they_hold_about_one_in_so_many() -> None:
    values = np.random.default_rng(0).standard_normal((64, 20_000)).astype(np.float32)
    rows = chosen(values)
    assert 0.8 < rows.size * ONE_IN / values.shape[1] < 1.2
    padded = np.concatenate([values, np.zeros((5, values.shape[1]), np.float32)])[:, ::-1]
    assert np.array_equal(np.sort(values.shape[1] - 1 - chosen(padded)), rows)


@pytest.mark.parametrize(("rows", "columns"), [(0, 3), (5, 7), (40000, 3), (70000, 3), (3, 70000)])
def test_sums_in_double_precision_are_made_of_any_size(rows: int, columns: int) -> None:
    """Some columns at a time; where results of one are more than are made at once, that one."""
    a, b = np.arange(2 * rows, dtype=np.float32).reshape(2, rows), np.ones((2, columns), np.float32)
    found = real_sums(a, b, np.ones((1, columns), np.float32), lambda sums: sums)
    np.testing.assert_array_equal(found, np.broadcast_to(a.sum(axis=0)[:, None] + 1, (rows, columns)))


def test_numbers_that_are_none_come_out_alike_whatever_the_tiles() -> None:
    b = Builder.new("net")
    rng = np.random.default_rng(0)
    x = b.input("x", TensorType((1, 64, 64, 48)))
    y = b.conv(x, b.weight(rng.normal(0, 1, (130, 64, 3, 3)).astype(np.float32), "w"), pads=(1, 1, 1, 1))
    module = b.outputs([y], ["y"])
    sample = rng.normal(0, 1, (1, 64, 64, 48)).astype(np.float32)
    sample[0, 3, 5, 5], sample[0, 9, 5, 6], sample[0, 1, 60, 2] = np.inf, -np.inf, -np.inf
    for target, precision in MODES:
        result = bmcompiler.compile_module(module, target=target, quantize=precision, check="never")
        session = result.session()
        with sampled_sums():
            wrong = prove.difference(session, result.module, prove.find_target(target), {"x": sample})
        assert not wrong
