"""Norms and softmax are the chip's where samples show that eight bits do, and the host's everywhere else."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from nets import Net

import bmcompiler
from bmcompiler.ir import Module, copy_module
from bmcompiler.passmanager import PassContext, run_pipeline
from bmcompiler.quant.table import save_table
from bmcompiler.target import find_target

LEVEL = np.random.default_rng(2).uniform(-1, 1, (16, 4, 6)).astype(np.float32)
STEEP = LEVEL * np.geomspace(1, 300, 4, dtype=np.float32)[:, None]
"""Rows whose sums of powers of e are far apart."""


def softmax(rows: int = 4) -> Module:
    n = Net()
    return n.done(n.softmax(n.input(1, rows, 6), axis=-1))


def compiled(data: np.ndarray | None, **options: Any) -> bmcompiler.Result:
    given = {} if data is None else {"data": {"data": data}}
    return bmcompiler.compile_module(softmax(), target="bm1880", quantize="int8", **given, **options)


def on_host(result: bmcompiler.Result) -> set[str]:
    return {row.kind for row in result.rows if row.where == "cpu"}


def test_what_samples_show_to_be_near_is_the_chips() -> None:
    result = compiled(LEVEL, check="always")
    assert not on_host(result)
    assert result.accuracy is not None
    assert max(output.error for output in result.accuracy.outputs) < 0.03
    assert any("the chip computes norms, softmax" in note for note in result.notes)


def test_what_samples_show_to_be_far_is_the_hosts() -> None:
    result = compiled(STEEP, check="always")
    assert "softmax" in on_host(result)
    assert any("the host computes norms, softmax" in note for note in result.notes)


def test_what_the_hosts_floats_do_far_better_is_theirs() -> None:
    """Scores far apart: probabilities are 0 and 1 in float, and at most 127 of 128 in bytes."""
    n = Net()
    x = n.conv(n.input(1, 4, 1, 6), n.constant(30 * np.eye(4)[:, :, None, None]), n.fill(0.0, 4))
    data = np.sign(LEVEL) * np.array([0.1, 0.2, 0.4, 1.0], np.float32)[:, None]
    given = {"data": data.reshape(16, 4, 1, 6)}
    result = bmcompiler.compile_module(n.done(n.softmax(x, axis=1)), target="bm1880", quantize="int8", data=given)
    assert "softmax" in on_host(result)
    (note,) = (note for note in result.notes if "norms, softmax" in note)
    assert note.startswith("the host computes") and "with these in float" in note


@pytest.mark.parametrize(("statistics", "host"), [("host", True), ("bytes", False)])
def test_an_option_decides_it_without_measuring(statistics: str, host: bool) -> None:
    pipeline = find_target("bm1880").pipeline("int8", 2).replace("legalize", f"legalize{{statistics={statistics}}}")
    for data in (LEVEL, STEEP):
        result = compiled(data, pipeline=pipeline)
        assert ("softmax" in on_host(result)) is host
        assert not any("norms, softmax" in note for note in result.notes)


def legalized(ctx: PassContext, rows: int = 4) -> bool:
    """Whether the softmax was taken apart."""
    module = softmax(rows)
    run_pipeline(module, "legalize", ctx)
    return "softmax" not in {op.short_name for op in module.walk()}


def test_without_samples_nothing_is_known() -> None:
    assert not legalized(PassContext(find_target("bm1880")))


def test_other_input_shapes_take_over_what_was_found_for_the_first() -> None:
    near, far = (PassContext(find_target("bm1880"), {"data": data}) for data in (LEVEL, STEEP))
    assert legalized(near) and not legalized(far)
    near.data, far.data = {"data": np.repeat(STEEP, 2, 1)}, {"data": np.repeat(LEVEL, 2, 1)}
    assert legalized(near, 8) and not legalized(far, 8)


def test_a_table_of_the_net_in_bytes_serves_the_whole_one(tmp_path: Path) -> None:
    """Who has the table alone cannot measure, and has the host compute."""
    n = Net()
    x = n.input(1, 4, 6)
    module = n.done(n.softmax(n.layer_norm(x, n.w(6), n.w(6), axis=2), axis=-1))
    target = find_target("bm1880")
    measured = PassContext(target, {"data": LEVEL})
    run_pipeline(copy_module(module), "legalize{statistics=bytes},calibrate", measured)
    save_table(measured.table, table := tmp_path / "net.table")
    result = bmcompiler.compile_module(module, target=target.name, quantize="int8", table=table)
    assert {"softmax", "layer_norm"} <= on_host(result)
