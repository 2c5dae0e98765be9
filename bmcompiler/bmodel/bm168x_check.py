"""What holds in a BM168x model, checked when it is read and before it is written."""

from __future__ import annotations

import math
from collections.abc import Sequence

from bmcompiler.bmodel.bm168x import (
    ADDRESS_SPACE,
    BASIC,
    DTYPES,
    IO_ALONE,
    STORE_MODES,
    Bm168xModel,
    Bm168xNet,
    Bm168xStage,
    Bm168xTensor,
    CpuSubnet,
    TpuSubnet,
)
from bmcompiler.bmodel.bm168x_streams import MOST_COMMANDS, STREAM_STEP, count, ends
from bmcompiler.bmodel.model import MAX_RANK, damaged
from bmcompiler.files.store import StrPath
from bmcompiler.instructions.order import STREAMS

_SMALLEST = 2.0**-126  # scales and their reciprocals are normal float32 numbers
_HOST = 2  # Bm168xTensor.memory of a tensor without device memory


class _BrokenError(ValueError):
    """What does not hold; the message is one clause."""


def _require(holds: bool, reason: str) -> None:
    if not holds:
        raise _BrokenError(reason)


def check_model(model: Bm168xModel, file: StrPath | None) -> None:
    """Every number that a reader or the runtime relies on.

    Raises:
        FileFormatError: naming file, net, stage and value.
    """
    try:
        _require(model.chip.isascii() and model.chip.isalnum(), f"the chip {model.chip!r} has no name")
        _require(bool(model.nets), "the model holds no net")
        for net in model.nets:
            _require(bool(net.stages), f"net {net.name!r} has no stage")
            for index, stage in enumerate(net.stages):
                _check_stage(f"net {net.name!r}, stage {index}", model, net, stage)
    except _BrokenError as error:
        raise damaged(str(error), file) from None


def _check_stage(where: str, model: Bm168xModel, net: Bm168xNet, stage: Bm168xStage) -> None:
    end = stage.ctx_address + stage.ctx_size
    _require(
        0 <= stage.ctx_address <= end <= ADDRESS_SPACE,
        f"{where} asks for neuron memory from {stage.ctx_address:#x} to {end:#x}, addresses have 40 bits",
    )
    end = stage.io_address + stage.io_size
    _require(
        0 <= stage.io_address <= end <= ADDRESS_SPACE,
        f"{where} asks for io memory from {stage.io_address:#x} to {end:#x}, addresses have 40 bits",
    )
    end = stage.coeff_address + len(stage.coefficients)
    _require(
        stage.coeff_address >= 0 and end <= ADDRESS_SPACE,
        f"{where} wants its coefficients at {stage.coeff_address:#x} to {end:#x}, addresses have 40 bits",
    )
    _require(0 <= stage.cpu_mem_size < 1 << 32, f"{where} asks for {stage.cpu_mem_size} elements of host memory")
    _require(bool(stage.inputs), f"{where} has no input")
    _require(bool(stage.outputs), f"{where} has no output")
    # What addresses of the other modes mean is not known here: they are kept as they are.
    areas = {
        BASIC: [("neuron", stage.ctx_address, stage.ctx_size)],
        IO_ALONE: [("io", stage.io_address, stage.io_size), ("neuron", stage.ctx_address, stage.ctx_size)],
    }.get(net.address_mode if model.chip in STREAM_STEP else -1)
    for kind, tensors in (("input", stage.inputs), ("output", stage.outputs)):
        for number, tensor in enumerate(tensors):
            place = f"{where}, {kind} {number}"
            _check_tensor(place, tensor)
            if areas and tensor.memory != _HOST:
                _check_place(place, tensor, areas)
    _check_subnets(where, model.chip, stage)


def _check_place(where: str, tensor: Bm168xTensor, areas: Sequence[tuple[str, int, int]]) -> None:
    """`areas`: (name, first address, bytes) of what may hold the tensor."""
    name, first, size = areas[0]
    start = tensor.address - first
    _require(
        any(begin <= tensor.address and tensor.address + tensor.size <= begin + room for _, begin, room in areas),
        f"{where} lies outside the {name} memory (bytes {start} to {start + tensor.size} of {size})",
    )


def _check_tensor(where: str, tensor: Bm168xTensor) -> None:
    rank = len(tensor.shape)
    _require(1 <= rank <= MAX_RANK, f"{where} has {rank} dimensions, 1 to {MAX_RANK} are possible")
    _require(
        all(1 <= dim <= ADDRESS_SPACE for dim in tensor.shape) and math.prod(tensor.shape) <= ADDRESS_SPACE,
        f"{where} has an impossible shape {list(tensor.shape)}",
    )
    _require(tensor.dtype in DTYPES, f"{where} has an unknown element type {tensor.dtype!r}")
    _require(0 <= tensor.store_mode < len(STORE_MODES), f"{where} has an unknown store mode {tensor.store_mode}")
    scale = tensor.scale
    _require(scale == 0 or _SMALLEST <= scale <= 1 / _SMALLEST, f"{where} has an impossible scale {scale}")
    _require(0 <= tensor.address <= ADDRESS_SPACE, f"{where} has an address of more than 40 bits")
    for name, low, high in (
        ("zero_point", -(1 << 31), 1 << 31),
        ("hidden", -(1 << 31), 1 << 31),
        ("index", -(1 << 31), 1 << 31),
        ("memory", 0, 1 << 32),
        ("cpu_address", 0, 1 << 32),
        ("pad_h", 0, 1 << 32),
    ):
        value = getattr(tensor, name)
        _require(low <= value < high, f"{where} has an impossible {name} {value}")


def _check_subnets(where: str, chip: str, stage: Bm168xStage) -> None:
    ids = [subnet.id for subnet in stage.subnets]
    _require(bool(ids), f"{where} has no commands")
    _require(len(set(ids)) == len(ids), f"{where} has two subnets of one number")
    known = {-1, *ids}
    for subnet in stage.subnets:
        place = f"{where}, subnet {subnet.id}"
        _require(0 <= subnet.id < 1 << 31, f"{place} has an impossible number")
        _require(known.issuperset(subnet.next), f"{place} is followed by {subnet.next}, which do not all exist")
        for kind, tensors in (("input", subnet.inputs), ("output", subnet.outputs)):
            for number, tensor in enumerate(tensors):
                _check_tensor(f"{place}, {kind} {number}", tensor)
        if isinstance(subnet, TpuSubnet):
            _check_commands(place, chip, subnet, stage)
        elif isinstance(subnet, CpuSubnet):
            _require(-(1 << 31) <= subnet.op_type < 1 << 31, f"{place} has an impossible layer {subnet.op_type}")


def _check_commands(where: str, chip: str, subnet: TpuSubnet, stage: Bm168xStage) -> None:
    for index, group in enumerate(subnet.groups):
        _require(not group.polled.hau, f"{where}, group {index} has commands of the sort engine, which files have not")
        for engine, data in zip(STREAMS, group):
            place, step, most = f"{where}, group {index}", STREAM_STEP[chip], MOST_COMMANDS[chip]
            reason = f"has {len(data)} bytes of {engine.name} commands"
            _require(len(data) % step == 0, f"{place} {reason}, which come in steps of {step}")
            commands = count(chip, engine, data)
            _require(commands <= most, f"{place} has {commands} {engine.name} commands, {most} are possible")
            _require(ends(chip, engine, data), f"{place}: the {engine.name} commands have no end mark")
    if subnet.dynamic:
        end = subnet.ir_offset + subnet.ir_length
        _require(
            0 <= subnet.ir_offset <= end <= len(stage.intermediate),
            f"{where} has its code at bytes {subnet.ir_offset} to {end} of {len(stage.intermediate)}",
        )
