"""The race check of BM1684 programs: what is touched, what is ordered, and that compiled programs pass."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from bm1684_nets import Net, local_memory
from bm1684_programs import analysed, model, relu, relu_tiles, transfer, waiting, with_wait

from bmcompiler.backends.bm1684.asm import assemble, listing
from bmcompiler.backends.bm1684.build import CommandBuilder
from bmcompiler.backends.bm1684.chip import CHIP, local_address
from bmcompiler.backends.bm1684.isa import DataFormat, Direction, Engine, Eu, Precision, StrideCode, Task
from bmcompiler.backends.bm1684.target import TARGET
from bmcompiler.bmodel import load
from bmcompiler.bmodel.bm168x import Bm168xModel, CommandGroup, CpuSubnet, TpuSubnet
from bmcompiler.bmodel.layers import LayerSpan
from bmcompiler.errors import SimulatorError
from bmcompiler.ir import Value
from bmcompiler.runtime.simulator.bm1684.analysis import analyze
from bmcompiler.runtime.simulator.races import Accesses

_DATA = Path(__file__).parents[1] / "data"
_GOLDEN = [
    (name, number, dict(np.load(_DATA / f"{name}.npz")))
    for name in ("bm1684_golden", "bm1684_golden2")
    for number in range(int(np.load(_DATA / f"{name}.npz")["count"]))
]


def vendor_model(name: str, folder: Path) -> Path:
    """A file of the vendor's compiler."""
    path = folder / f"{name}.bmodel"
    path.write_bytes(np.load(_DATA / "bm1684_vendor_models.npz", allow_pickle=False)[name].tobytes())
    return path


def conv_relu(net: Net) -> Value:
    return net.b.relu(net.b.conv(net.inputs[0], net.f32(70, 16, 3, 3), net.f32(70), pads=(1, 1, 1, 1)))


def residual(net: Net) -> Value:
    inner = net.b.sigmoid(net.b.conv(net.inputs[0], net.f32(16, 16, 3, 3), pads=(1, 1, 1, 1)))
    return net.b.add(net.b.conv(inner, net.f32(16, 16, 1, 1)), net.inputs[0])


def compiled(make: Callable[[Net], Value], level: int, lanes: int) -> Bm168xModel:
    net = Net([(2, 16, 20, 20)])
    module = net.module([make(net)])
    with local_memory(lanes):
        found = TARGET.compile([module], level).model
    assert isinstance(found, Bm168xModel)
    return found


@pytest.mark.parametrize("lanes", [1 << 14, 1 << 19])
@pytest.mark.parametrize("level", [0, 1, 2])
@pytest.mark.parametrize("make", [conv_relu, residual])
def test_compiled_programs_have_no_race(make: Callable[[Net], Value], level: int, lanes: int) -> None:
    assert not analyze(compiled(make, level, lanes)).races()


@pytest.mark.parametrize("name", ["tiny_f32", "tiny_i8"])
def test_vendor_programs_have_no_race(name: str, tmp_path: Path) -> None:
    found = load(vendor_model(name, tmp_path))
    assert isinstance(found, Bm168xModel)
    groups = found.nets[0].stages[0].groups
    assert not analyze(found).races()
    assert assemble(listing(found)) == groups
    places = [place for place in waiting(groups) if place[2] != 1]  # the second TIU command waits again
    assert len(places) == 2
    for place in places:
        assert analysed(with_wait(groups, place, 0)).races(), place


def test_the_loss_of_a_wait_of_a_compiled_program_is_found() -> None:
    found = compiled(conv_relu, 1, 1 << 13)
    groups = found.nets[0].stages[0].groups
    places = waiting(groups)
    assert len(places) > 8
    for place in places:
        assert analysed(with_wait(groups, place, 0)).races(), place


@pytest.mark.parametrize("parallel", [False, True])
def test_every_wait_of_a_correct_program_is_needed_and_its_loss_is_found(parallel: bool) -> None:
    program = relu_tiles(parallel=parallel, tiles=3)
    assert not analysed(program).races()
    # in the serial form, the store before a load has waited for all that the load waits for
    places = [place for place in waiting(program) if parallel or place[1] is Engine.TIU]
    assert len(places) >= 3
    for place in places:
        assert analysed(with_wait(program, place, 0)).races(), place


def test_a_race_names_both_commands_layers_and_bytes() -> None:
    spans = [LayerSpan("first", "relu", 0, 1), LayerSpan("second", "relu", 1, 1)]
    program = with_wait(relu_tiles(parallel=False), (0, Engine.TIU, 1), 0)
    (race, *_) = analysed(program, spans).races()
    text = str(race)
    assert "(GDMA, s2l.copy)" in text and "(TIU, ar.max of layer 'second')" in text
    assert "writes bytes 256 to 511 of lanes 0 to 63" in text


def test_groups_and_subnets_on_the_host_order_everything() -> None:
    (group,) = relu_tiles(parallel=True)
    assert not analysed([group, group]).races()
    one, two = (TpuSubnet([group], [], []) for _ in range(2))
    assert not analyze(model(one, CpuSubnet(-1, b"", [], []), two)).races()


def unordered(tiu: dict[str, int], gdma: dict[str, int]) -> int:
    """Races of a TIU command and a transfer that do not know of each other."""
    build = CommandBuilder()
    build.tiu(**tiu)
    build.gdma(after=[], **gdma)
    return len(analysed(build.groups()).races())


def copy_words(offset: int, shape: tuple[int, int, int, int], lane: int = 0) -> dict[str, int]:
    """Reads aligned words at `offset`; writes far away."""
    return {
        "tsk_typ": Task.TENSOR,
        "tsk_eu_typ": Eu.COPY,
        "opd0_addr": local_address(offset, lane),
        "res0_addr": local_address(1 << 18, lane),
        **{f"res0_{axis}": size for axis, size in zip("nchw", shape)},
    }


def fill_local(offset: int, lane: int, channels: int, form: DataFormat, width: int, step: int) -> dict[str, int]:
    """Fills `width` elements of each channel, `step` elements apart."""
    sizes = {f"dst_{axis}": size for axis, size in zip("nchw", (1, channels, 1, width))}
    strides = {f"dst_{axis}_str": stride for axis, stride in zip("nchw", (0, 512, 0, step))}
    return {
        "direction": Direction.LOCAL_TO_LOCAL,
        "special_func": 4,
        "stride_enable": 1,
        "src_data_format": form,
        "dst_data_format": form,
        "dst_addr": local_address(offset, lane),
        **sizes,
        **strides,
    }


def test_lanes_and_rows_of_channels_are_told_apart() -> None:
    reads = copy_words(0, (1, 70, 4, 8))  # lanes 0 to 5 have a second row at byte 128
    for lane, offset, races in ((5, 128, 1), (6, 128, 0), (63, 0, 1), (63, 127, 1), (63, 128, 0), (0, 256, 0)):
        assert unordered(reads, fill_local(offset, lane, 1, DataFormat.INT8, 1, 1)) == races, (lane, offset)
    wraps = copy_words(0, (1, 4, 4, 8), lane=62)  # channels 2 and 3 in lanes 0 and 1, a row further
    assert unordered(wraps, fill_local(128, 1, 1, DataFormat.INT8, 1, 1)) == 1
    assert unordered(wraps, fill_local(0, 1, 1, DataFormat.INT8, 1, 1)) == 0


def test_image_slots_of_words_are_told_apart() -> None:
    three = {
        **copy_words(0, (3, 2, 4, 8)),
        **{f"opt_{name}_prec": Precision.INT8 for name in ("res0", "opd0", "opd1")},
    }
    for slot in range(4):
        assert unordered(three, fill_local(slot, 0, 2, DataFormat.INT8, 32, 4)) == (slot < 3)


def test_negative_strides_reach_below_the_address() -> None:
    reads = copy_words(256, (1, 1, 1, 8))
    reads |= {"short_opd0_str": StrideCode.EXPLICIT, "opd0_w_str": (1 << 32) - 1}
    for offset, races in ((224, 0), (227, 0), (228, 1), (256, 1), (259, 1), (260, 0)):
        assert unordered(reads, fill_local(offset, 0, 1, DataFormat.INT8, 1, 1)) == races, offset


def test_tables_in_l2_are_watched() -> None:
    def table(offset: int) -> int:
        lookup = {
            "tsk_typ": Task.LUT,
            "opd0_addr": local_address(0),
            "res0_addr": local_address(1 << 18),
            "opd1_addr": 0x0A_2000,
        }
        address = CHIP.l2_window + offset
        fill = {
            "direction": Direction.SYSTEM_TO_SYSTEM,
            "special_func": 4,
            "dst_addr": address,
            **{f"dst_{axis}": 1 for axis in "nchw"},
        }
        return unordered(lookup | {f"res0_{axis}": 1 for axis in "nchw"}, fill)

    assert [table(0x0A_2000 + at) for at in (-4, 0, 1020, 1024)] == [0, 1, 1, 0]


@pytest.mark.parametrize(("name", "number", "file"), _GOLDEN, ids=[f"{name}-{n}" for name, n, _ in _GOLDEN])
def test_recorded_instructions_change_what_they_are_said_to_write(
    name: str, number: int, file: dict[str, np.ndarray]
) -> None:
    case = {key[4:]: value for key, value in file.items() if key.startswith(f"c{number:02d}_")}
    command = case["cmd"].tobytes()
    group = CommandGroup(command, b"") if case["engine"] == Engine.TIU else CommandGroup(b"", command)
    written = lane_bytes(analysed([group]).accesses())
    for space, lane, offset, length in case["out_idx"].tolist():
        if space == 1:
            changed = set(range(offset, offset + length))
            inside = changed & written[lane]
            # up to 15 unchanged bytes join blocks of changed ones
            assert {offset, offset + length - 1} <= inside and len(inside) * 16 >= length


def lane_bytes(accesses: Accesses) -> list[set[int]]:
    """Bytes of each lane that commands write."""
    found: list[set[int]] = [set() for _ in range(CHIP.lanes)]
    for row in np.flatnonzero(accesses.write & (accesses.space == 0)).tolist():
        addresses = accesses.start[row]
        for size, stride in zip(accesses.dims[row], accesses.strides[row]):
            addresses = np.add.outer(addresses, np.arange(size) * stride)
        for address in np.unique(addresses).tolist():
            lane, offset = divmod(address, CHIP.lmem_size)
            found[lane].add(offset)
    return found


def test_operands_outside_memory_are_refused_by_number() -> None:
    build = CommandBuilder()
    relu(build, CHIP.lmem_size - 128)
    with pytest.raises(SimulatorError, match=r"command 0 \(TIU\): local tensor"):
        analysed(build.groups()).races()
    build = CommandBuilder()
    transfer(build, Direction.LOCAL_TO_SYSTEM, CHIP.program_base, 0)
    with pytest.raises(SimulatorError, match=r"command 0 \(GDMA\): the command writes to the coefficients"):
        analysed(build.groups()).races()


def test_programs_without_commands_have_neither_time_nor_races() -> None:
    empty = analyze(model())
    assert empty.timing().cycles == 0 and not empty.races()
