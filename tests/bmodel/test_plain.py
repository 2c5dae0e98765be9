"""The plain model file: what is written is read, what is malformed is refused with words."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bmcompiler.bmodel import TensorInfo
from bmcompiler.bmodel.plain import Part, PlainModel, PlainProgram
from bmcompiler.errors import FileFormatError, UsageError


class Model(PlainModel):
    container = "test"
    magic = b"PLAINTST"


def tensor(name: str, offset: int = 0) -> TensorInfo:
    return TensorInfo(name, (1, 2, 3), offset=offset, threshold=4.5)


def model() -> Model:
    first = PlainProgram([tensor("x")], [tensor("y", 6)], 64, [Part(True, b"abcd"), Part(False, b"cpu")], 1, "[]")
    second = PlainProgram([tensor("x")], [tensor("y", 6)], 16, [])
    return Model("net", [first, second], [b"one", b"twenty"])


def written(one: Model) -> bytes:
    return b"".join(bytes(part) for part in one.parts())


def test_a_model_is_read_as_it_was_written() -> None:
    data = written(model())
    again = Model.read(memoryview(data), "net.bmodel")
    assert Model.is_one(memoryview(data)) and again == model() and written(again) == data
    stage = again.stages()[0]
    assert (stage.weight_size, stage.instruction_size, stage.neuron_size) == (6, 4, 64)
    assert stage.subnets == ("device, 4 bytes", "host, 3 bytes")
    assert dict(again.pieces())["net0_stage0_part1.mlir"] == b"cpu"
    assert again.select(1).programs == model().programs[1:]
    with pytest.raises(UsageError, match="there is no program 2"):
        again.select(2)


def test_a_model_without_weights_has_empty_coefficients() -> None:
    one = Model("net", [PlainProgram([tensor("x")], [tensor("x")], 8, [])])
    assert one.coefficients(one.programs[0]) == b"" and Model.read(memoryview(written(one)), "f") == one


def changed(change: Any) -> bytes:
    """The file with another description."""
    data = written(model())
    size = int.from_bytes(data[8:12], "little")
    facts = json.loads(data[12 : 12 + size])
    change(facts)
    text = json.dumps(facts).encode()
    return data[:8] + len(text).to_bytes(4, "little") + text + data[12 + size :]


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda f: f.pop("net"), "description of the model is malformed"),
        (lambda f: f["programs"][0].update(layers=3), "description of the model is malformed"),
        (lambda f: f["programs"][0]["inputs"][0].update(shape=["1"]), "description of the model is malformed"),
        (lambda f: f["programs"][0]["parts"].append([1, 2]), "description of the model is malformed"),
        (lambda f: f["programs"][0]["parts"].append(7), "description of the model is malformed"),
        (lambda f: f["weights"].append(-5), "the file should have"),
        (lambda f: f.update(programs=[], weights=[3, 6, 7]), "holds no program"),
        (lambda f: f["programs"][0].update(weight_index=2), "program 0 uses weight set 2"),
        (lambda f: f["programs"][0].update(neuron_size=-1), "program 0 asks for -1 bytes"),
        (lambda f: f["programs"][1]["outputs"][0].update(offset=11), "program 1, output 0 lies outside"),
    ],
)
def test_a_malformed_description_is_refused(change: Any, reason: str) -> None:
    with pytest.raises(FileFormatError, match=reason):
        Model.read(memoryview(changed(change)), "net.bmodel")


@settings(max_examples=200, deadline=None)
@given(st.integers(0, 10_000), st.integers(0, 255), st.integers(0, 10_000))
def test_damaged_files_never_crash_the_reader(place: int, byte: int, end: int) -> None:
    data = bytearray(written(model()))
    data[place % len(data)] = byte
    for damaged in (bytes(data), bytes(data[: end % len(data)])):
        try:
            Model.read(memoryview(damaged), "net.bmodel")
        except FileFormatError:
            continue
