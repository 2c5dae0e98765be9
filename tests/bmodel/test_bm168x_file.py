"""Reading and writing BM168x model files."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from bmcompiler.bmodel import load, save
from bmcompiler.bmodel.bm168x import (
    FIRST_ADDRESS,
    Bm168xModel,
    Bm168xNet,
    Bm168xStage,
    Bm168xTensor,
    CommandGroup,
    CpuSubnet,
    Location,
    TpuSubnet,
)
from bmcompiler.bmodel.bm168x_message import multiplier_of, schema, step_of
from bmcompiler.bmodel.model import TensorInfo
from bmcompiler.errors import FileFormatError, UnsupportedError, UsageError

VENDOR = np.load(Path(__file__).parents[1] / "data" / "bm1684_vendor_models.npz", allow_pickle=False)
CTX = FIRST_ADDRESS + 0x1000


def stage(height: int = 8, fill: int = 1) -> Bm168xStage:
    """An int8 input, a device run, a host layer, a device run, a float output; weights of 100 bytes."""
    data = Bm168xTensor("data", "int8", (5, 3, height, 8), CTX, store_mode=2, scale=0.03125, hidden=1)
    middle = Bm168xTensor("middle", "float32", (1, 4), CTX + 0x1000, hidden=5, memory=3)
    sorted_ = Bm168xTensor("sorted", "float32", (1, 4), CTX + 0x2000, hidden=5, memory=3, cpu_address=4)
    prob = Bm168xTensor("prob", "uint8", (1, 4), CTX + 0x3000, scale=0.125, zero_point=7, hidden=2)
    first = CommandGroup(bytes([fill]) * 256, bytes([fill + 1]) * 384)
    return Bm168xStage(
        [data],
        [prob],
        CTX,
        0x4000,
        [
            TpuSubnet([first, CommandGroup(b"", bytes(128))], [data], [middle], 0, [1]),
            CpuSubnet(17, b"\x05\0\0\0", [middle], [sorted_], 1, [2]),
            TpuSubnet([CommandGroup(bytes(128), first.gdma)], [sorted_], [prob], 2),
        ],
        coefficients=bytes(range(100)),
        locations=[Location("conv", 0, 64), Location("fc", 64, 36)],
        cpu_mem_size=8,
        layers=b'[["conv","conv",0,2]]',
    )


@pytest.fixture
def model() -> Bm168xModel:
    return Bm168xModel([Bm168xNet("tiny", [stage(), stage(16, fill=3)]), Bm168xNet("other", [stage(4)])])


def vendor(name: str, folder: Path) -> Path:
    """A file of the vendor's compiler (1.30.2) for a net of one 3x3 convolution and ReLU; see the data file."""
    path = folder / f"{name}.bmodel"
    path.write_bytes(VENDOR[name].tobytes())
    return path


def test_a_saved_model_is_loaded_equal(model: Bm168xModel, tmp_path: Path) -> None:
    save(model, tmp_path / "a.bmodel")
    again = load(tmp_path / "a.bmodel")
    assert isinstance(again, Bm168xModel)
    assert again == replace(model, neuron_size=0x4000)
    save(again, tmp_path / "b.bmodel")
    assert (tmp_path / "a.bmodel").read_bytes() == (tmp_path / "b.bmodel").read_bytes()


def test_pieces_start_at_pages_and_equal_ones_are_stored_once(model: Bm168xModel) -> None:
    data = b"".join(model.parts())
    _, header, description, binary = np.frombuffer(data, np.uint32, 4)
    assert data[:4] == b"\xee\xaa\x55\xff"
    assert header == 64
    assert (header + description) % 4096 == 0
    assert header + description + binary == len(data)
    assert data.count(bytes(range(100))) == 1
    assert data.index(bytes(range(100))) % 4096 == 0


def test_stages_name_offsets_scales_and_subnets(model: Bm168xModel) -> None:
    first = model.stages()[0]
    assert (first.net, first.index, first.weight_size, first.neuron_size) == ("tiny", 0, 100, 0x4000)
    assert first.instruction_size == 256 + 384 + 128 + 128 + 384
    assert first.inputs == (TensorInfo("data", (5, 3, 8, 8), 4, 0, scale=0.03125, layout="4N"),)
    assert first.outputs == (TensorInfo("prob", (1, 4), 9, 0x3000, scale=0.125, zero_point=7),)
    assert len(first.subnets) == 3
    assert "host, layer 17" in first.subnets[1]


def test_packed_images_take_whole_words() -> None:
    assert Bm168xTensor("a", "int8", (5, 3, 2, 2), store_mode=2).size == 8 * 12
    assert Bm168xTensor("a", "int16", (5, 3, 2, 2), store_mode=1).size == 6 * 12 * 2
    assert Bm168xTensor("a", "int8", (5, 3, 2, 2)).size == 60


@pytest.mark.parametrize("name", ["tiny_f32", "tiny_i8", "cpu_f32"])
def test_vendor_files_are_read_and_written_without_loss(name: str, tmp_path: Path) -> None:
    path = vendor(name, tmp_path)
    read = load(path)
    assert isinstance(read, Bm168xModel)
    save(read, tmp_path / "again.bmodel")
    again = load(tmp_path / "again.bmodel")
    assert isinstance(again, Bm168xModel)
    assert again == read
    assert again.source.keys() == read.source.keys() > {"kernel_module", "cpuop_module"}
    for one, two in zip(read.nets[0].stages[0].subnets, again.nets[0].stages[0].subnets, strict=True):
        assert one.source == two.source
    assert (tmp_path / "again.bmodel").stat().st_size == path.stat().st_size


def test_vendor_int8_scales_are_one_step_of_reals_both_ways(tmp_path: Path) -> None:
    (described,) = load(vendor("tiny_i8", tmp_path)).stages()
    assert described.inputs[0].scale == pytest.approx(3 / 127, rel=1e-6)
    assert described.outputs[0].scale == pytest.approx(9 / 255, rel=1e-6)
    assert (described.inputs[0].dtype, described.outputs[0].dtype) == ("int8", "uint8")


def test_vendor_host_layers_keep_their_parameters(tmp_path: Path) -> None:
    read = load(vendor("cpu_f32", tmp_path))
    assert isinstance(read, Bm168xModel)
    first, host, last = read.nets[0].stages[0].subnets
    assert isinstance(host, CpuSubnet)
    assert (host.op_type, len(host.parameters), host.next) == (17, 12, [2])
    assert isinstance(first, TpuSubnet)
    assert isinstance(last, TpuSubnet)
    assert [len(first.groups[0].tiu), len(last.groups[0].gdma)] == [128, 256]


@pytest.mark.parametrize("step", [0.1, 1.0, 3 / 127, 2.0**-20, 12345.678])
def test_scales_of_inputs_survive_as_what_the_vendor_multiplies_by(step: float) -> None:
    single = float(np.float32(step))
    multiplier = multiplier_of(single)
    assert multiplier == np.float32(1) / np.float32(single)
    assert multiplier_of(step_of(multiplier)) == multiplier


def test_every_float32_multiplier_survives() -> None:
    for number in np.random.default_rng(5).uniform(1, 2, 2000).astype(np.float32).tolist():
        assert multiplier_of(step_of(number)) == number


def test_damaged_coefficients_are_noticed(model: Bm168xModel, tmp_path: Path) -> None:
    data = bytearray(b"".join(model.parts()))
    data[data.index(bytes(range(100))) + 5] ^= 1
    (tmp_path / "bad.bmodel").write_bytes(data)
    with pytest.raises(FileFormatError, match="SHA-256"):
        load(tmp_path / "bad.bmodel")


def test_select_keeps_one_program(model: Bm168xModel) -> None:
    chosen = model.select(1)
    assert [found.inputs[0].shape for found in chosen.stages()] == [(5, 3, 16, 8)]
    with pytest.raises(UsageError, match="no program 3"):
        model.select(3)


def test_pieces_are_model_files_commands_and_weights(model: Bm168xModel, tmp_path: Path) -> None:
    pieces = dict(model.pieces())
    assert pieces["bm_net0_stage1_group0.tiu"] == b"\x03" * 256
    assert pieces["bm_net1_stage0_coeff.bin"] == bytes(range(100))
    (tmp_path / "one.bmodel").write_bytes(pieces["bm_net1_stage0.bmodel"])
    assert [found.net for found in load(tmp_path / "one.bmodel").stages()] == ["other"]


def test_combined_files_keep_nets_apart_and_join_stages_of_one_net(model: Bm168xModel) -> None:
    other = Bm168xModel([Bm168xNet("tiny", [stage(32)]), Bm168xNet("third", [stage()])])
    both = model.combined([other])
    assert [(net.name, len(net.stages)) for net in both.nets] == [("tiny", 3), ("other", 1), ("third", 1)]
    assert [len(net.stages) for net in model.nets] == [2, 1]
    assert len(both.weight_sets) == 1
    with pytest.raises(UnsupportedError, match="occurs twice"):
        model.combined([model])


def test_files_of_two_chips_are_not_combined(model: Bm168xModel) -> None:
    with pytest.raises(UnsupportedError, match="cannot share a file"):
        model.combined([replace(model, chip="BM1682")])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"ctx_size": 0x100}, "outside the neuron memory"),
        ({"inputs": []}, "has no input"),
        ({"subnets": []}, "has no commands"),
        ({"subnets": [TpuSubnet([], [], [], 0, [4])]}, "do not all exist"),
        ({"subnets": [TpuSubnet([CommandGroup(bytes(100), b"")], [], [])]}, "in steps of 128"),
        ({"subnets": [TpuSubnet([], [], [], dynamic=True, ir_length=5)]}, "has its code at bytes 0 to 5 of 0"),
        ({"outputs": [Bm168xTensor("y", "int2", (1, 4), CTX)]}, "unknown element type"),
        ({"outputs": [Bm168xTensor("y", "int8", (1, 4), CTX, scale=-1.0)]}, "impossible scale"),
        ({"outputs": [Bm168xTensor("y", "int8", (1, 0), CTX)]}, "impossible shape"),
        ({"outputs": [Bm168xTensor("y", "int8", (1, 4), CTX, store_mode=3)]}, "unknown store mode"),
    ],
)
def test_impossible_models_are_neither_written_nor_read(change: dict[str, object], message: str) -> None:
    broken = Bm168xModel([Bm168xNet("net", [replace(stage(), **change)])])
    with pytest.raises(FileFormatError, match=message) as error:
        broken.parts()
    assert "net 'net', stage 0" in str(error.value)


def test_the_schema_numbers_its_fields_as_the_format_does() -> None:
    """Field numbers that the vendor's loader relies on (bm1684.md 10.2)."""
    wanted = {
        "Model": {"net": 4, "neuron_size": 5, "lib_backend": 10},
        "NetParameter": {"coeff_mem": 4, "cmd_group": 8, "sub_net": 12, "net_stat": 15, "tensor_loc": 19},
        "SubNet": {"cmd_group": 1, "id": 10, "next_subnet_ids": 11, "run_core": 15},
        "Tensor": {"device_addr": 3, "scale": 7, "zero_point": 10, "relentry": 13},
        "CmdGroup": {"binary_gdma": 3, "gdma_cmd_byte": 5},
        "CoeffMem": {"check_code": 1, "location": 3, "decrypt_size": 5},
    }
    for table, places in wanted.items():
        names = [field.name for field in schema().tables[table]]
        assert {name: names.index(name) for name in places} == places


def test_the_schema_has_no_cycles() -> None:
    """A table that contained itself would let a file decide how deep the reader recurses."""
    tables = schema().tables
    known: set[str] = set()
    while more := {
        name
        for name, fields in tables.items()
        if name not in known and {field.kind for field in fields if field.kind in tables} <= known
    }:
        known |= more
    assert known == set(tables)


def test_encrypted_coefficients_are_refused_with_a_remedy(model: Bm168xModel, tmp_path: Path) -> None:
    model.nets[0].stages[0].source["coeff_mem"] = {"encrypt_mode": 1}
    save(model, tmp_path / "a.bmodel")
    with pytest.raises(UnsupportedError, match=re.escape("net 'tiny', stage 0: the coefficients are encrypted")):
        load(tmp_path / "a.bmodel")


def test_commands_of_other_chips_are_kept_as_they_are(model: Bm168xModel, tmp_path: Path) -> None:
    save(model, tmp_path / "a.bmodel")
    data = (tmp_path / "a.bmodel").read_bytes().replace(b"BM1684\0", b"BM1682\0")
    (tmp_path / "other.bmodel").write_bytes(data)
    other = load(tmp_path / "other.bmodel")
    assert isinstance(other, Bm168xModel)
    assert other.target == "bm1682"
    assert other.nets[0].stages[0].groups == []
    assert [found.instruction_size for found in other.stages()] == [found.instruction_size for found in model.stages()]
    save(other, tmp_path / "again.bmodel")
    assert (tmp_path / "again.bmodel").read_bytes() == data
