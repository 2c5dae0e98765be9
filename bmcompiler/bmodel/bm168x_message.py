"""BM168x model <-> the tables of its description and the binary section.

Encoding starts from the tables that were read, when there were any, and replaces what the model says: fields that
nothing here uses survive a load and save.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from pathlib import Path

import numpy as np

from bmcompiler.bmodel.bm168x import (
    DTYPES,
    FIRST_ADDRESS,
    HEADER,
    Bm168xModel,
    Bm168xNet,
    Bm168xStage,
    Bm168xTensor,
    CommandGroup,
    CpuSubnet,
    Location,
    TpuSubnet,
)
from bmcompiler.bmodel.bm168x_streams import COMMAND_BYTES, STREAM_STEP, count
from bmcompiler.bmodel.flat import FlatError, Reader, Schema, Values, Writer, parse_schema
from bmcompiler.bmodel.model import Buffer, damaged, digest
from bmcompiler.bmodel.shared_notes import TOGETHER, apart, together
from bmcompiler.errors import FileFormatError, UnsupportedError
from bmcompiler.files.store import StrPath, forget_pages
from bmcompiler.instructions.order import Engine

MAGIC = b"\xee\xaa\x55\xff"
_PAGE = 4096  # descriptions and pieces of the binary section start at multiples of it, as in the vendor's files
# Attribute of a tensor -> field of the description; the others need a conversion.
_TENSOR = {
    "address": "device_addr",
    "store_mode": "gmem_stmode",
    "zero_point": "zero_point",
    "hidden": "hidden",
    "index": "index",
    "memory": "mem_type",
    "cpu_address": "cpu_addr",
    "pad_h": "pad_h",
}
# How notes of this compiler begin (bmcompiler.bmodel.layers).
_LAYERS = (b'[["', b"[]\n", TOGETHER[:4].encode())


@cache
def schema() -> Schema:
    """The tables of the description, from bm168x.fbs."""
    return parse_schema(Path(__file__).with_name("bm168x.fbs").read_text(encoding="utf-8"))


def decode(description: memoryview, binary: memoryview, file: StrPath) -> Bm168xModel:
    """Model from the two parts of a file. Raises FileFormatError when either is malformed, or UnsupportedError."""
    try:
        return _Decoder(Reader(schema(), description, binary).root(), file).model()
    except FlatError as error:
        reason = f"the model description cannot be decoded ({error})"
        raise damaged(reason, file) from None


class _Decoder:
    def __init__(self, root: Values, file: StrPath) -> None:
        self._root, self._file = root, file
        # Commands of other chips have other forms: they stay as they are, in `source`.
        self._chip = root["chip"]
        self._known = self._chip in STREAM_STEP
        self._copies: dict[int, bytes] = {}
        self._checked: dict[int, bytes] = {}

    def _damaged(self, reason: str) -> FileFormatError:
        return damaged(reason, self._file)

    def model(self) -> Bm168xModel:
        root = dict(self._root)
        if root.pop("type") != "B":
            raise self._damaged("the model description is not one of a BM168x model")
        return Bm168xModel(
            nets=[self._net(net) for net in root.pop("net")],
            chip=root.pop("chip"),
            version=root.pop("version"),
            time=root.pop("time"),
            neuron_size=root.pop("neuron_size", 0),
            source=root,
        )

    def _net(self, net: Values) -> Bm168xNet:
        name = net.pop("name")
        stages = net.pop("parameter", [])
        made = [self._stage(f"net {name!r}, stage {n}", stage) for n, stage in enumerate(stages)]
        self._notes(made)
        return Bm168xNet(name, made, net.pop("addr_mode", 0), net)

    def _stage(self, where: str, stage: Values) -> Bm168xStage:
        known_inputs = frozenset(tensor["name"] for tensor in stage["input_tensor"])
        inputs, outputs = (
            [self._tensor(f"{where}, {kind}", tensor, known_inputs) for tensor in stage.pop(f"{kind}_tensor")]
            for kind in ("input", "output")
        )
        groups = stage.pop("cmd_group", []) if self._known else stage.get("cmd_group", [])
        # Files from before subnets are one device subnet.
        subnets = stage.pop("sub_net", None) or [{"id": 0, "next_subnet_ids": [-1], "cmd_group": groups}]
        result = Bm168xStage(
            inputs,
            outputs,
            ctx_address=stage.pop("ctx_addr", 0),
            ctx_size=stage.pop("ctx_size", 0),
            subnets=[self._subnet(where, subnet, known_inputs) for subnet in subnets],
            io_address=stage.pop("io_addr", 0),
            io_size=stage.pop("io_size", 0),
            cpu_mem_size=stage.pop("cpu_mem_size", 0),
            intermediate=stage.pop("binary_ir", b""),
            source=stage,
        )
        self._coefficients(where, stage, result)
        if bytes(stage.get("tensor_loc", b"")[:4]).startswith(_LAYERS):
            result.layers = bytes(stage.pop("tensor_loc"))
        return result

    def _notes(self, stages: list[Bm168xStage]) -> None:
        if stages and stages[0].layers.startswith(TOGETHER.encode()):
            stored = [stage.layers.decode(errors="replace") for stage in stages]
            for stage, text in zip(stages, apart(stored, self._file), strict=True):
                stage.layers = text.encode()

    def _coefficients(self, where: str, stage: Values, result: Bm168xStage) -> None:
        block = stage.get("coeff_mem", {})
        if block.get("encrypt_mode", 0):
            raise UnsupportedError(
                f"{where}: the coefficients are encrypted", remedy="decrypt the model first"
            ).located(file=self._file)
        result.coeff_address = block.pop("address", FIRST_ADDRESS)
        result.coefficients = block.pop("binary_coeff", b"")
        result.locations = [
            Location(entry["name"], entry.get("offset", 0), entry.get("size", 0)) for entry in block.pop("location", [])
        ]
        # A wrong sum is an error: the vendor's runtime does not look, but wrong weights give wrong results silently.
        wanted = block.pop("check_code", b"")
        key = id(result.coefficients)
        if wanted and key not in self._checked:
            self._checked[key] = hashlib.sha256(result.coefficients).digest()
            forget_pages(result.coefficients)
        if wanted and wanted != self._checked[key]:
            raise self._damaged(f"{where}: the coefficients do not have the SHA-256 that the file says")

    def _tensor(self, where: str, tensor: Values, net_inputs: frozenset[str]) -> Bm168xTensor:
        name = tensor.pop("name")
        shapes = tensor.pop("shape", [])
        number = tensor.pop("data_type", 0)
        if len(shapes) != 1 or number >= len(DTYPES):
            problem = f"{len(shapes)} shapes" if len(shapes) != 1 else f"elements of unknown type {number}"
            raise self._damaged(f"{where} {name!r} has {problem}")
        scale = tensor.pop("scale", 1.0)
        tensor.pop("size", None)
        return Bm168xTensor(
            name,
            DTYPES[number],
            tuple(shapes[0].get("dim", [])),
            scale=step_of(scale) if name in net_inputs else scale,
            source=tensor,
            **{attribute: tensor.pop(key, 0) for attribute, key in _TENSOR.items()},
        )

    def _subnet(self, where: str, subnet: Values, net_inputs: frozenset[str]) -> TpuSubnet | CpuSubnet:
        number = subnet.pop("id", -1)
        where = f"{where}, subnet {number}"
        inputs, outputs = (
            [self._tensor(f"{where}, {kind}", tensor, net_inputs) for tensor in subnet.pop(f"{kind}_tensor", [])]
            for kind in ("input", "output")
        )
        following = subnet.pop("next_subnet_ids", [])
        mode = subnet.pop("subnet_mode", 0)
        if mode == 0:
            return TpuSubnet(
                [self._group(where, group) for group in subnet.pop("cmd_group", [])] if self._known else [],
                inputs,
                outputs,
                number,
                following,
                bool(subnet.pop("is_dynamic", 0)),
                subnet.pop("ir_offset", 0),
                subnet.pop("ir_len", 0),
                source=subnet,
            )
        layers = subnet.pop("cpu_param", [])
        if mode != 1 or len(layers) != 1:
            problem = f"is of kind {mode} (a branch)" if mode != 1 else f"has {len(layers)} host layers"
            raise UnsupportedError(f"{where} {problem}, which is not supported").located(file=self._file)
        (layer,) = layers
        return CpuSubnet(
            layer.pop("op_type", 0),
            layer.pop("binary_param", b""),
            inputs,
            outputs,
            number,
            following,
            bool(layer.pop("is_custom", 0)),
            source={**subnet, "cpu_param": [layer]},
        )

    def _group(self, where: str, group: Values) -> CommandGroup:
        if group.get("reloc_entries"):
            raise UnsupportedError(f"{where}: commands with a list of relocations").located(file=self._file)
        return CommandGroup(*(self._commands(where, key, group) for key in ("bdc", "gdma")))

    def _commands(self, where: str, key: str, group: Values) -> bytes:
        data: Buffer = group.get(f"binary_{key}", b"")
        fixed = STREAM_STEP[self._chip] == COMMAND_BYTES
        size = group.get(f"{key}_num", 0) * COMMAND_BYTES if fixed else group.get(f"{key}_cmd_byte", 0)
        if size > len(data):
            raise self._damaged(f"{where} announces {size} bytes of commands, {len(data)} are there")
        if id(data) not in self._copies:  # shared pieces are copied once
            self._copies[id(data)] = bytes(data)
        copy = self._copies[id(data)]
        return copy if size == len(copy) else copy[:size]


def step_of(multiplier: float) -> float:
    """The real value of one step of an input whose reals are multiplied by `multiplier` (float32), 0 for 0.

    It is the float32 number whose reciprocal, rounded to float32, is `multiplier`; else the reciprocal itself.
    """
    if multiplier == 0:
        return 0.0
    with np.errstate(over="ignore"):
        middle = np.float32(1) / np.float32(multiplier)
        for step in (middle, np.nextafter(middle, np.float32(0)), np.nextafter(middle, np.float32(np.inf))):
            if step and np.float32(1) / step == np.float32(multiplier):
                return float(step)
    return 1.0 / multiplier


def multiplier_of(step: float) -> float:
    """What reals of an input are multiplied by, as float32: the inverse of `step_of`."""
    with np.errstate(over="ignore"):
        return float(np.float32(1.0 / step)) if step else 0.0


class _Section:
    """The binary section while it grows; equal pieces are stored once."""

    def __init__(self) -> None:
        self.parts: list[Buffer] = []
        self.size = 0
        self._places: dict[str, int] = {}
        self._digests: dict[int, tuple[Buffer, str]] = {}  # with the buffer, so that its id stays its own

    def digest(self, data: Buffer) -> str:
        """SHA-256 of a piece, hexadecimal, computed once."""
        if id(data) not in self._digests:
            self._digests[id(data)] = data, digest(data)
        return self._digests[id(data)][1]

    def place(self, data: Buffer) -> tuple[int, int]:
        """Where a piece is, after adding it when it is new."""
        if not len(data):
            return 0, 0
        key = self.digest(data)
        if key not in self._places:
            self._places[key] = self.size
            padding = -len(data) % _PAGE
            self.parts += [data, bytes(padding)]
            self.size += len(data) + padding
        return self._places[key], len(data)


def encode(model: Bm168xModel, file: StrPath | None) -> list[Buffer]:
    """The parts of the file of a checked model. Raises FileFormatError when something does not fit into it."""
    section = _Section()
    try:
        description = Writer(schema(), section.place).finish(_model_values(model, section.digest))
    except FlatError as error:
        raise FileFormatError(f"the model cannot be described ({error})", file=file) from None
    description += bytes(-(HEADER + len(description)) % _PAGE)
    if len(description) >= 1 << 32 or section.size >= 1 << 32:
        raise FileFormatError(f"{section.size} bytes of commands and coefficients do not fit into a file", file=file)
    numbers = (HEADER, len(description), section.size, *[0] * 12)
    header = MAGIC + b"".join(number.to_bytes(4, "little") for number in numbers)
    return [header, description, *section.parts]


def _model_values(model: Bm168xModel, digest_of: Callable[[Buffer], str]) -> Values:
    largest = max(stage.ctx_size for _, stage in model.all_stages())
    return {
        "device_num": 1,
        **model.source,
        "type": "B",
        "version": model.version,
        "time": model.time,
        "chip": model.chip,
        "net": [
            {
                **net.source,
                "name": net.name,
                "addr_mode": net.address_mode,
                "parameter": [
                    _stage_values(model.chip, stage, notes, digest_of)
                    for stage, notes in zip(net.stages, _notes(net), strict=True)
                ],
            }
            for net in model.nets
        ],
        "neuron_size": max(largest, model.neuron_size),
    }


def _notes(net: Bm168xNet) -> list[bytes]:
    texts = [stage.layers for stage in net.stages]
    try:
        return [text.encode() for text in together([text.decode() for text in texts])]
    except UnicodeDecodeError:
        return texts  # of a file, kept as they are


def _stage_values(chip: str, stage: Bm168xStage, notes: bytes, digest_of: Callable[[Buffer], str]) -> Values:
    inputs = frozenset(tensor.name for tensor in stage.inputs)
    values: Values = {
        "ctx_sizes": [stage.ctx_size],
        "core_num": 1,
        **stage.source,
        "input_tensor": _tensors(stage.inputs, inputs),
        "output_tensor": _tensors(stage.outputs, inputs),
        "ctx_addr": stage.ctx_address,
        "ctx_size": stage.ctx_size,
        "io_addr": stage.io_address,
        "io_size": stage.io_size,
        # The runtime loads the commands from here and takes counts from the subnets (bm1684.md 10.2).
        "cmd_group": _groups(chip, stage.groups) or stage.source.get("cmd_group", []),
        "sub_net": [_subnet_values(chip, subnet, inputs) for subnet in stage.subnets],
        "cpu_mem_size": stage.cpu_mem_size,
    }
    if len(stage.coefficients):
        values["coeff_mem"] = {
            **stage.source.get("coeff_mem", {}),
            "address": stage.coeff_address,
            "check_code": bytes.fromhex(digest_of(stage.coefficients)),
            "binary_coeff": stage.coefficients,
            "location": [vars(location) for location in stage.locations],
        }
    if len(stage.intermediate):
        values["binary_ir"] = stage.intermediate
    if notes:
        values["tensor_loc"] = notes
    return values


def _subnet_values(chip: str, subnet: TpuSubnet | CpuSubnet, net_inputs: frozenset[str]) -> Values:
    values: Values = {
        **subnet.source,
        "id": subnet.id,
        "next_subnet_ids": subnet.next,
        "input_tensor": _tensors(subnet.inputs, net_inputs),
        "output_tensor": _tensors(subnet.outputs, net_inputs),
    }
    if isinstance(subnet, TpuSubnet):
        dynamic = {"is_dynamic": int(subnet.dynamic), "ir_offset": subnet.ir_offset, "ir_len": subnet.ir_length}
        groups = _groups(chip, subnet.groups) or subnet.source.get("cmd_group", [])
        return {"run_core": 1, **values, **dynamic, "subnet_mode": 0, "cmd_group": groups}
    (layer,) = subnet.source.get("cpu_param", [{}])
    own = {"op_type": subnet.op_type, "binary_param": subnet.parameters, "is_custom": int(subnet.custom)}
    return {**values, "subnet_mode": 1, "cpu_param": [{"cpu_const": [], **layer, **own}]}


def _groups(chip: str, groups: Iterable[CommandGroup]) -> list[Values]:
    return [
        {
            "bdc_num": count(chip, Engine.TIU, group.tiu),
            "gdma_num": count(chip, Engine.GDMA, group.gdma),
            "binary_bdc": group.tiu,
            "binary_gdma": group.gdma,
            "bdc_cmd_byte": len(group.tiu),
            "gdma_cmd_byte": len(group.gdma),
        }
        for group in groups
    ]


def _tensors(tensors: Sequence[Bm168xTensor], net_inputs: frozenset[str]) -> list[Values]:
    return [
        {
            **tensor.source,
            "name": tensor.name,
            "data_type": DTYPES.index(tensor.dtype),
            "size": tensor.size,
            "shape": [{"dim": list(tensor.shape)}],
            "scale": multiplier_of(tensor.scale) if tensor.name in net_inputs else tensor.scale,
            **{key: getattr(tensor, attribute) for attribute, key in _TENSOR.items()},
        }
        for tensor in tensors
    ]
