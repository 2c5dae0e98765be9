"""Raw commands on the simulated device against float references (dv.md 1.6, 5)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from dv_data import halves
from dv_device import Board, board
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from bmcompiler.backends.dv.arithmetic.accumulate import Accumulator
from bmcompiler.backends.dv.chip import DvChip
from bmcompiler.backends.dv.driver.commands import Buf, ConvCommand, FcCommand, Pads, Pair, Run
from bmcompiler.backends.dv.driver.geometry import chain
from bmcompiler.backends.dv.driver.structs import MAXIMIZER_V0
from bmcompiler.backends.dv.formats.layout import nchw_to_whc8
from bmcompiler.backends.dv.formats.packing import pack_conv, pack_dilated, pack_fc
from bmcompiler.runtime import dmp_dv as dv
from bmcompiler.runtime.simulator.dv.conv import _windows_fit

Array = NDArray[Any]


def integers(random: np.random.Generator, *shape: int, limit: int = 3) -> Array:
    return random.integers(-limit, limit + 1, shape).astype(np.float64)


def reference(x: Array, w: Array, b: Array, pads: Pads, stride: Pair, dilation: Pair) -> Array:
    """Convolution of [n][c][h][w] with [m][c][ky][kx], tap by tap."""
    x = np.pad(x, ((0, 0), (0, 0), (pads.top, pads.bottom), (pads.left, pads.right)))
    ky, kx = w.shape[2:]
    oh = (x.shape[2] - (ky - 1) * dilation.y - 1) // stride.y + 1
    ow = (x.shape[3] - (kx - 1) * dilation.x - 1) // stride.x + 1
    out = np.zeros((x.shape[0], w.shape[0], oh, ow)) + b[:, None, None]
    for j in range(ky):
        for i in range(kx):
            part = x[:, :, j * dilation.y :, i * dilation.x :][:, :, :: stride.y, :: stride.x][:, :, :oh, :ow]
            out += np.einsum("nchw,mc->nmhw", part, w[:, :, j, i])
    return out


def conv_run(on: Board, w: Array, b: Array, **fields: Any) -> Run:
    packed = pack_conv(halves(w), halves(b))
    ky, kx = w.shape[2:]
    return Run(m=len(w), weight_buf=on.put(packed), kernel=Pair(kx, ky), conv_enable=1, **fields)


def execute(on: Board, x: Array, *runs: Run, topo: int = 1, **fields: Any) -> list[Array]:
    """The results in external memory of a command, one after the other."""
    _, c, h, w = x.shape
    command = ConvCommand(w, h, c, runs, topo=topo, input_buf=on.put_map(x), **fields)
    links = [link for link in chain(command) if link.external]
    samples = max(1, command.input_circular_offset)
    output = on.room(samples * sum(link.out.bytes for link in links))
    on.run(replace(command, output_buf=output).encode())
    results, start = [], output.offs
    for link in links:
        shape = (samples, link.out.c, link.out.h, link.out.w)
        results.append(on.get_map(Buf(output.mem, start), shape).astype(np.float64))
        start += samples * link.out.bytes
    assert (on.data[start : start + 32] == 0xCD).all()  # nothing behind the result is touched
    return results


@given(
    st.tuples(st.integers(1, 7), st.integers(1, 7)),
    st.tuples(st.sampled_from([1, 3, 9, 65]), st.sampled_from([1, 8, 9])),
    st.tuples(*[st.integers(0, 3)] * 4),
    st.tuples(*[st.integers(1, 2)] * 2),
    st.booleans(),
)
@settings(max_examples=30, deadline=None)
def test_convolution_of_integers_is_exact(
    kernel: tuple[int, int],
    channels: tuple[int, int],
    pads: tuple[int, int, int, int],
    stride: tuple[int, int],
    quantized: bool,
) -> None:
    (kx, ky), (c, m) = kernel, channels
    random = np.random.default_rng(kx + 8 * ky + 64 * c)
    x, w, b = integers(random, 1, c, 9, 8), integers(random, m, c, ky, kx), integers(random, m)
    with board() as on:
        run = conv_run(on, w, b, conv_pad=Pads(*pads), conv_stride=Pair(*stride))
        if quantized:
            table = [0, -3, -2, -1, 1, 2, 3]
            indices = np.vectorize(table.index)(w.astype(int)).astype(np.uint8)
            packed = pack_conv(indices, halves(b), halves([*table, *[0] * 249]))
            run = replace(run, weight_buf=on.put(packed), weight_fmt=3)
        (found,) = execute(on, x, run)
    np.testing.assert_array_equal(found, reference(x, w, b, run.conv_pad, run.conv_stride, Pair(1, 1)))


@pytest.mark.parametrize("k", [3, 5])
def test_dilated_convolution(k: int) -> None:
    random = np.random.default_rng(k)
    x, w, b = integers(random, 1, 10, 12, 15), integers(random, 9, 10, k, k), integers(random, 9)
    dilation, pad = Pair(2, 3), Pads(k - 1, k - 1, (k - 1) * 3 // 2, (k - 1) * 3 // 2)
    with board() as on:
        run = replace(conv_run(on, w, b), dilation=dilation, conv_pad=pad)
        run = replace(run, weight_buf=on.put(pack_dilated(halves(w), halves(b))))
        (found,) = execute(on, x, run)
    np.testing.assert_array_equal(found, reference(x, w, b, pad, Pair(1, 1), dilation))


def test_weight_format_0_is_fp16() -> None:
    random = np.random.default_rng(0)
    x, w, b = integers(random, 1, 9, 9, 8), integers(random, 9, 9, 3, 3), integers(random, 9)
    with board() as on:
        run = conv_run(on, w, b)
        (expected,), (found,) = execute(on, x, run), execute(on, x, replace(run, weight_fmt=0))
    np.testing.assert_array_equal(found, expected)


def test_depthwise_with_slopes() -> None:
    random = np.random.default_rng(1)
    x, w, b = integers(random, 1, 12, 7, 9), integers(random, 12, 1, 3, 3), integers(random, 12)
    slopes = integers(random, 12) / 4
    with board() as on:
        weights = on.put(pack_conv(halves(w), halves(b), prelu=halves(slopes)))
        run = Run(m=12, weight_buf=weights, kernel=Pair(3, 3), conv_enable=3, conv_pad=Pads(1, 1, 1, 1), actfunc=4)
        (found,) = execute(on, x, run)
    full = np.zeros((12, 12, 3, 3))
    full[range(12), range(12)] = w[:, 0]
    plain = reference(x, full, b, run.conv_pad, Pair(1, 1), Pair(1, 1))
    np.testing.assert_array_equal(found, np.where(plain >= 0, plain, plain * slopes[:, None, None]))


@pytest.mark.parametrize("enable", [5, 7])
def test_transposed_convolution(enable: int) -> None:
    """Framework padding 1, stride 2, kernel 4: conv_pad is k - 1 - pad and the planes are rotated."""
    random = np.random.default_rng(enable)
    x, b = integers(random, 1, 8, 5, 6), integers(random, 8)
    w = integers(random, 8, 1 if enable == 7 else 8, 4, 4)
    with board() as on:
        weights = on.put(pack_conv(halves(w[:, :, ::-1, ::-1]), halves(b)))
        run = Run(
            m=8,
            weight_buf=weights,
            kernel=Pair(4, 4),
            conv_enable=enable,
            conv_stride=Pair(2, 2),
            conv_pad=Pads(2, 2, 2, 2),
        )
        (found,) = execute(on, x, run)
    assert found.shape == (1, 8, 10, 12)
    scattered = np.zeros((1, 8, 12, 14)) + b[:, None, None]
    for y, column in np.ndindex(5, 6):
        at = np.s_[:, :, 2 * y : 2 * y + 4, 2 * column : 2 * column + 4]
        product = "nc,cyx->ncyx" if enable == 7 else "nc,mcyx->nmyx"
        scattered[at] += np.einsum(product, x[:, :, y, column], w[:, 0] if enable == 7 else w)
    np.testing.assert_array_equal(found, scattered[:, :, 1:-1, 1:-1])


def test_convolution_addition_pooling_and_activation_in_one_run() -> None:
    """dv.md 1.6: conv -> add -> max pooling -> activation; the addend has the size before pooling."""
    random = np.random.default_rng(2)
    x, w, b = integers(random, 1, 9, 8, 6), integers(random, 10, 9, 3, 3, limit=1), integers(random, 10)
    addend = integers(random, 1, 10, 8, 6, limit=50)
    with board() as on:
        run = conv_run(on, w, b, conv_pad=Pads(1, 1, 1, 1), actfunc=2, actfunc_param=0x3800)
        run = replace(run, pool_enable=1, pool_size=Pair(2, 2), pool_stride=Pair(2, 2))
        (found,) = execute(on, x, run, output_mode=1, eltwise_buf=on.put_map(addend))
    total = reference(x, w, b, run.conv_pad, Pair(1, 1), Pair(1, 1)) + addend
    pooled = total.reshape(1, 10, 4, 2, 3, 2).max((3, 5))
    np.testing.assert_array_equal(found, np.where(pooled >= 0, pooled, pooled / 2))


def test_addition_of_two_maps() -> None:
    """A 1x1 average with factor 1 does nothing but add."""
    random = np.random.default_rng(3)
    x, addend = integers(random, 1, 11, 5, 6, limit=40), integers(random, 1, 11, 5, 6, limit=40)
    run = Run(m=11, pool_enable=2, pool_size=Pair(1, 1), pool_avg_param=0x3C00, actfunc=6, rectifi_en=1)
    with board() as on:
        (found,) = execute(on, x, run, output_mode=1, eltwise_buf=on.put_map(addend))
    np.testing.assert_array_equal(found, np.clip(x + addend, 0, 6))


def test_chains_and_branches_pass_through_the_unified_buffer() -> None:
    """topo 0b1011: runs 0, 1 and 2+3 all begin at the command's input; three results lie side by side."""
    random = np.random.default_rng(4)
    x = integers(random, 1, 16, 8, 8)
    w = [integers(random, 8, 16, 1, 1), integers(random, 16, 16, 3, 3, limit=1), integers(random, 8, 16, 1, 1, limit=1)]
    zero = np.zeros(16)
    same = Pads(1, 1, 1, 1)
    with board() as on:
        first = conv_run(on, w[0], zero[:8])
        second = Run(m=16, pool_enable=1, pool_size=Pair(3, 3), pool_pad=same)
        third = conv_run(on, w[1], zero, conv_pad=same, actfunc=2)
        fourth = conv_run(on, w[2], zero[:8])
        found = execute(on, x, first, second, third, fourth, topo=0b1011)
    one = Pair(1, 1)
    np.testing.assert_array_equal(found[0], reference(x, w[0], zero[:8], Pads(), one, one))
    padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)), constant_values=-np.inf)
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), (2, 3))
    np.testing.assert_array_equal(found[1], windows.max((4, 5)))
    middle = np.maximum(reference(x, w[1], zero, same, one, one), 0)
    np.testing.assert_array_equal(found[2], reference(middle, w[2], zero[:8], Pads(), one, one))


def test_upsampling_then_activation() -> None:
    x = np.arange(-12, 12).reshape(1, 2, 3, 4)
    with board() as on:
        (found,) = execute(on, x, Run(m=2, pool_enable=4, actfunc=2))
    np.testing.assert_array_equal(found, np.maximum(x, 0).repeat(2, 2).repeat(2, 3))


def test_average_counts_padding() -> None:
    x = np.full((1, 8, 4, 4), 9.0)
    run = Run(
        m=8,
        pool_enable=2,
        pool_size=Pair(3, 3),
        pool_stride=Pair(2, 2),
        pool_pad=Pads(1, 0, 1, 0),
        pool_avg_param=int(halves(1 / 9)),
    )
    with board() as on:
        (found,) = execute(on, x, run)
    np.testing.assert_allclose(found[0, 0], [[4, 6], [6, 9]], rtol=1e-3)


def test_lrn_is_near_the_closed_form() -> None:
    random = np.random.default_rng(6)
    x = random.standard_normal((1, 32, 5, 4)) * 30
    with board() as on:
        (found,) = execute(on, x, Run(m=32, lrn=0x503))
    x = x.astype(np.float16).astype(float)
    squares = np.pad(x * x, ((0, 0), (2, 2), (0, 0), (0, 0)))
    total = sum(squares[:, i : i + 32] for i in range(5))
    np.testing.assert_allclose(found, x * (1 + 2e-5 * total) ** -0.75, rtol=0.01, atol=0.001)


def test_a_batch_equals_single_commands() -> None:
    random = np.random.default_rng(7)
    x, w, b = integers(random, 3, 9, 6, 5), integers(random, 10, 9, 3, 3), integers(random, 10)
    with board() as on:
        run = conv_run(on, w, b, actfunc=3)
        (batch,) = execute(on, x, run, input_circular_offset=3)
        singles = [execute(on, sample[None], run)[0] for sample in x]
    np.testing.assert_array_equal(batch, np.concatenate(singles))


@pytest.mark.parametrize("fc_freq", [0, 100])
def test_fully_connected(fc_freq: int) -> None:
    random = np.random.default_rng(8)
    x, w, b = integers(random, 40), integers(random, 9, 40), integers(random, 9)
    with board(DvChip(fc_freq=fc_freq)) as on:
        weights = on.put(pack_fc(halves(w), halves(b), (40, 1, 1), (9, 1, 1)))
        source, target = on.put(halves(x)), on.room(18)
        on.run(FcCommand(40, 9, weights, source, target, actfunc=1).encode())
        found = on.data[target.offs : target.offs + 18].view(np.float16)
    np.testing.assert_array_equal(found, np.maximum(w @ x + b, 0))


@pytest.mark.parametrize("code", [0, 1, 2, 3, 4])
@pytest.mark.parametrize("slope", [0.0, 0.5])
@pytest.mark.parametrize("fc_freq", [0, 100])
def test_functions_behind_a_fully_connected_layer(fc_freq: int, slope: float, code: int) -> None:
    """dv.md 1.5: a convolution in its place takes the slope also for ReLU, the FC block has a ReLU without one."""
    sums = np.array([-4.0, -0.5, 0.0, 0.25, 3.0])
    below = slope if code == 3 or not fc_freq else 0.0
    leaky = np.where(sums >= 0, sums, below * sums)
    wanted = (sums, leaky, np.tanh(sums), leaky, 1 / (1 + np.exp(-sums)))[code]
    with board(DvChip(fc_freq=fc_freq)) as on:
        weights = on.put(pack_fc(halves(np.eye(5)), halves(np.zeros(5)), (5, 1, 1), (5, 1, 1)))
        target = on.room(10)
        param = int(np.float16(slope).view(np.uint16))
        command = FcCommand(5, 5, weights, on.put(halves(sums)), target, actfunc=code, actfunc_param=param)
        on.run(command.encode())
        found = on.data[target.offs : target.offs + 10].view(np.float16)
        np.testing.assert_array_equal(found, wanted.astype(np.float16))


def test_fully_connected_weights_are_read_at_commit_where_conv_runs_them() -> None:
    x, b = np.ones(8), np.zeros(8)
    for fc_freq, expected in ((0, 8.0), (100, 16.0)):
        with board(DvChip(fc_freq=fc_freq)) as on:
            weights = on.put(pack_fc(halves(np.ones((8, 8))), halves(b), (8, 1, 1), (8, 1, 1)))
            target = on.room(16)
            cmdlist = on.list_of(FcCommand(8, 8, weights, on.put(halves(x)), target).encode())
            assert dv.dmp_dv_cmdlist_commit(cmdlist) == 0
            on.data[weights.offs : weights.offs + 128].view(np.float16)[:] = 2
            assert dv.dmp_dv_cmdlist_wait(cmdlist, dv.dmp_dv_cmdlist_exec(cmdlist)) == 0
            assert on.data[target.offs : target.offs + 2].view(np.float16)[0] == expected
            dv.dmp_dv_cmdlist_release(cmdlist)


def test_maximizer_takes_the_lowest_of_equals() -> None:
    random = np.random.default_rng(9)
    scores = integers(random, 1, 11, 6, 5)
    with board() as on:
        command = np.zeros(1, MAXIMIZER_V0)
        command["header"] = (48, 4, 0, (0, 0))
        command["width"], command["height"], command["nclass"] = 5, 6, 11
        target = on.room(30)
        command["input_buf"], command["output_buf"] = tuple(on.put_map(scores)), tuple(target)
        on.run(command.tobytes())
        found = on.data[target.offs : target.offs + 30].reshape(5, 6).T
    np.testing.assert_array_equal(found, scores[0].argmax(0))


@pytest.mark.parametrize("accumulator", Accumulator)
def test_accumulators_agree_on_small_integers(accumulator: Accumulator) -> None:
    random = np.random.default_rng(10)
    x, w, b = integers(random, 1, 20, 6, 6), integers(random, 9, 20, 3, 3, limit=1), integers(random, 9)
    with board(accumulator=accumulator) as on:
        (found,) = execute(on, x, conv_run(on, w, b))
    np.testing.assert_array_equal(found, reference(x, w, b, Pads(), Pair(1, 1), Pair(1, 1)))


@pytest.mark.parametrize(
    ("fields", "run", "words"),
    [
        ({"z": 2}, {}, "3-D"),
        ({"input_circular_offset": 0x8000}, {}, "0x8000"),
        ({"output_mode": 1}, {}, "without eltwise_buf"),
        ({"output_mode": 2}, {}, "output_mode 2"),
        ({}, {"actfunc": 7}, "actfunc 7"),
        ({}, {"actfunc": 4}, "no slopes"),
        ({}, {"m": 4}, "m 4"),
        ({}, {"pool_enable": 0, "lrn": 0x501}, "lrn 0x501"),
    ],
)
def test_what_is_not_documented_is_not_guessed(fields: dict[str, Any], run: dict[str, Any], words: str) -> None:
    with board() as on:
        one = replace(Run(m=16, pool_enable=2, pool_size=Pair(1, 1)), **run)
        command = ConvCommand(4, 4, 16, (one,), input_buf=on.room(1024), output_buf=on.room(1024))
        cmdlist = on.list_of(replace(command, **fields).encode())
        assert dv.dmp_dv_cmdlist_commit(cmdlist) == 95
        assert words in dv.dmp_dv_get_last_error_message()
        dv.dmp_dv_cmdlist_release(cmdlist)


@pytest.mark.parametrize("pads", [Pads(1, 2, 2, 2), Pads(2, 2, 1, 2)])
def test_a_depthwise_kernel_that_has_no_place_is_refused(pads: Pads) -> None:
    """The driver does not ask this of depthwise kernels; its division says one place if steps are long."""
    random = np.random.default_rng(12)
    x, w, b = integers(random, 1, 8, 3, 3), integers(random, 8, 1, 7, 7), integers(random, 8)
    with board() as on:
        run = replace(conv_run(on, w, b, conv_stride=Pair(8, 8)), conv_enable=3)
        (found,) = execute(on, x, replace(run, conv_pad=Pads(2, 2, 2, 2)))
        padded = np.pad(x, ((0, 0), (0, 0), (2, 2), (2, 2)))
        np.testing.assert_array_equal(found[0, :, 0, 0], (padded[0] * w[:, 0]).sum((1, 2)) + b)
        command = ConvCommand(3, 3, 8, (replace(run, conv_pad=pads),), input_buf=on.put_map(x), output_buf=on.room(64))
        cmdlist = on.list_of(command.encode())
        assert dv.dmp_dv_cmdlist_commit(cmdlist) == -1
        assert "run 0: the kernel or pooling window is larger than" in dv.dmp_dv_get_last_error_message()
        dv.dmp_dv_cmdlist_release(cmdlist)


@pytest.mark.parametrize(
    "pads", [Pads(1, 1, 1, 1), Pads(0, 2, 1, 1), Pads(0, 1, 1, 1), Pads(1, 1, 1, 0), Pads(2, 2, 0, 1)]
)
def test_a_pooling_window_has_a_place_on_both_axes(pads: Pads) -> None:
    """The driver says so, too; the simulator takes commands that it has not seen."""
    run = Run(m=8, pool_enable=2, pool_size=Pair(5, 5), pool_stride=Pair(8, 8), pool_pad=pads)
    (link,) = chain(ConvCommand(3, 3, 8, (run,)))
    assert _windows_fit(link) == (pads.left + 3 + pads.right >= 5 and pads.top + 3 + pads.bottom >= 5)


def test_a_batch_beyond_its_memory_is_refused() -> None:
    with board() as on:
        end = Buf(on.room(0).mem, on.data.size - 512)
        run = Run(m=16, pool_enable=2, pool_size=Pair(1, 1))
        command = ConvCommand(4, 4, 16, (run,), input_buf=end, output_buf=on.room(512), input_circular_offset=2)
        cmdlist = on.list_of(command.encode())
        assert dv.dmp_dv_cmdlist_commit(cmdlist) == -1
        assert "input_buf ends 512 bytes after its memory" in dv.dmp_dv_get_last_error_message()
        dv.dmp_dv_cmdlist_release(cmdlist)


@pytest.mark.parametrize("actfunc", [5, 6])
def test_fully_connected_slopes_have_no_place(actfunc: int) -> None:
    """dv.md 1.5: PReLU is refused at commit."""
    with board() as on:
        cmdlist = on.list_of(FcCommand(8, 8, on.room(256), on.room(16), on.room(16), actfunc=actfunc).encode())
        assert dv.dmp_dv_cmdlist_commit(cmdlist) == 95
        dv.dmp_dv_cmdlist_release(cmdlist)


def test_buffers_may_begin_at_any_even_byte() -> None:
    random = np.random.default_rng(11)
    x = integers(random, 1, 12, 5, 3)
    with board() as on:
        source, target = on.put(np.zeros(400, np.uint8)), on.room(400)
        source, target = source._replace(offs=source.offs + 2), target._replace(offs=target.offs + 6)
        on.data[source.offs : source.offs + 360] = nchw_to_whc8(x.astype(np.float16))[0].view(np.uint8)
        run = Run(m=12, pool_enable=2, pool_size=Pair(1, 1), pool_avg_param=0x3C00)
        on.run(ConvCommand(3, 5, 12, (run,), input_buf=source, output_buf=target).encode())
        np.testing.assert_array_equal(on.get_map(target, (1, 12, 5, 3)), x)
        assert (on.data[target.offs - 6 : target.offs] == 0xCD).all() and on.data[target.offs + 360] == 0xCD
