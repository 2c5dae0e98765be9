"""Damaged model files: whatever bytes or fields change, the import succeeds or reports one BMError, and stays small."""

from __future__ import annotations

import random
import time
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from google.protobuf.message import DecodeError, Message
from onnx import helper
from onnx_models import graph_model

from bmcompiler.errors import BMError
from bmcompiler.frontends.onnx import import_onnx
from bmcompiler.ir import verify_module

CASES = 120
MAX_BYTES = 64 << 20
MAX_SECONDS = 5.0
node = helper.make_node


def sample() -> onnx.ModelProto:
    """A small net with most kinds of attributes, and shape arithmetic."""
    rng = np.random.default_rng(1)
    nodes = [
        node("Conv", ["x", "w", "b"], ["c"], name="conv", pads=[1, 1, 1, 1], strides=[2, 2], group=1),
        node("BatchNormalization", ["c", "b", "b", "b", "v"], ["n"], epsilon=1e-3),
        node("Clip", ["n", "low", "high"], ["r"]),
        node("AveragePool", ["r"], ["p"], kernel_shape=[2, 2], strides=[2, 2], auto_pad="SAME_UPPER"),
        node("Resize", ["p", "", "scales"], ["u"], mode="nearest", coordinate_transformation_mode="asymmetric"),
        node("Slice", ["u", "from", "to", "axes", "steps"], ["s"]),
        node("Pad", ["s", "pads"], ["q"], mode="edge"),
        node("Shape", ["q"], ["shape"]),
        node("Gather", ["shape", "zero"], ["batch"], axis=0),
        node("Concat", ["batch", "rest"], ["wanted"], axis=0),
        node("Reshape", ["q", "wanted"], ["f"]),
        node("Range", ["start", "limit", "delta"], ["range"]),
        node("Expand", ["range", "many"], ["e"]),
        node("Tile", ["e", "reps"], ["t"]),
        node("Softmax", ["f"], ["y"], axis=-1),
    ]
    constants: dict[str, Any] = {
        "w": rng.standard_normal((4, 3, 3, 3)).astype(np.float32),
        "b": rng.standard_normal(4).astype(np.float32),
        "v": np.ones(4, np.float32),
        "low": np.float32(0),
        "high": np.float32(6),
        "scales": np.asarray([1, 1, 2, 2], np.float32),
        "from": np.asarray([0, -1]),
        "to": np.asarray([3, -9]),
        "axes": np.asarray([2, 3]),
        "steps": np.asarray([1, -2]),
        "pads": np.asarray([0, 0, 1, 0, 0, 0, 0, 1]),
        "zero": np.asarray([0]),
        "rest": np.asarray([-1]),
        "start": np.asarray(0),
        "limit": np.asarray(4),
        "delta": np.asarray(1),
        "many": np.asarray([2, 1]),
        "reps": np.asarray([1, 3]),
    }
    arrays = {name: np.asarray(value) for name, value in constants.items()}
    return graph_model(nodes, {"x": (1, 3, 8, 8)}, ["y", "t"], arrays, opset=13)


@pytest.fixture(scope="module", autouse=True)
def traced_memory() -> Iterator[None]:
    tracemalloc.start()
    yield
    tracemalloc.stop()


def survives(run: Callable[[], Any]) -> bool:
    """True for a sound module, False for a BMError of a line per refusal; anything else fails the test."""
    tracemalloc.reset_peak()
    before, began = tracemalloc.get_traced_memory()[0], time.process_time()
    try:
        verify_module(run())
        return True
    except BMError as error:
        for each in getattr(error, "refusals", ()) or (error,):
            assert str(each).strip() and "\n" not in str(each)
        return False
    finally:
        peak = tracemalloc.get_traced_memory()[1]
        assert peak - before < MAX_BYTES and time.process_time() - began < MAX_SECONDS


@pytest.mark.parametrize("seed", range(CASES))
def test_changed_bytes(seed: int, tmp_path: Path) -> None:
    rng = random.Random(seed)
    data = bytearray(sample().SerializeToString())
    for _ in range(rng.randint(1, 6)):
        place = rng.randrange(len(data))
        kind = rng.randrange(4)
        if kind == 0:
            data[place] ^= 1 << rng.randrange(8)
        elif kind == 1:
            data[place] = rng.choice((0, 1, 0x7F, 0x80, 0xFF))
        elif kind == 2:
            del data[place : place + rng.randint(1, 8)]
        else:
            data[place:place] = rng.randbytes(rng.randint(1, 8))
    path = tmp_path / "mutated.onnx"
    path.write_bytes(data)
    survives(lambda: import_onnx(path))


@pytest.mark.parametrize("cut", range(0, 100, 7))
def test_truncated_files(cut: int, tmp_path: Path) -> None:
    data = sample().SerializeToString()
    path = tmp_path / "cut.onnx"
    path.write_bytes(data[: len(data) * cut // 100])
    assert not survives(lambda: import_onnx(path))


NUMBERS = (-(2**63), -(2**31), -7, -1, 0, 1, 2, 3, 5, 17, 255, 2**20, 2**31 - 1, 2**33, 2**62)
WORDS = ("", "x", "w", "y", "nothing", "SAME_LOWER", "linear", "Relu", "Conv", "Reshape", "\0", "a" * 1000)


def messages(message: Message) -> list[Message]:
    found = [message]
    for field, value in message.ListFields():
        if field.message_type is None:
            continue
        for item in value if not isinstance(value, Message) else [value]:
            found += messages(item)
    return found


def change_field(message: Message, rng: random.Random) -> None:
    """Give one field of a message another value of its type."""
    fields = message.ListFields()
    if not fields:
        return
    field, value = rng.choice(fields)
    if field.type == field.TYPE_BYTES and isinstance(value, bytes):
        setattr(message, field.name, value[: rng.randrange(len(value) + 1)])
        return
    if field.message_type is not None:
        if not isinstance(value, Message) and len(value):
            del value[rng.randrange(len(value))]
        return
    new: Any = rng.choice(NUMBERS)
    if field.type in (field.TYPE_INT32, field.TYPE_ENUM):
        new = max(-(2**31), min(2**31 - 1, new))
    if field.type in (field.TYPE_FLOAT, field.TYPE_DOUBLE):
        new = rng.choice((0.0, -1.0, 1e30, float("nan"), float("inf"), 0.5, 1e-30))
    if field.type == field.TYPE_STRING:
        new = rng.choice(WORDS)
    if field.type == field.TYPE_BYTES:
        new = rng.choice(WORDS).encode()
    if isinstance(value, (int, float, str, bytes)):
        setattr(message, field.name, new)
    else:
        value[rng.randrange(len(value))] = new


@pytest.mark.parametrize("seed", range(2 * CASES))
def test_changed_fields(seed: int) -> None:
    rng = random.Random(seed)
    model = sample()
    for _ in range(rng.randint(1, 3)):
        try:
            change_field(rng.choice(messages(model)), rng)
        except (ValueError, DecodeError):  # a value that this field refuses
            continue
    survives(lambda: import_onnx(model))


def constant_tensor(model: onnx.ModelProto, name: str) -> onnx.TensorProto:
    return next(tensor for tensor in model.graph.initializer if tensor.name == name)


@pytest.mark.parametrize("value", NUMBERS)
@pytest.mark.parametrize(
    "name", ["from", "to", "axes", "steps", "pads", "zero", "rest", "limit", "delta", "many", "reps"]
)
def test_hostile_numbers_in_constants(name: str, value: int) -> None:
    model = sample()
    tensor = constant_tensor(model, name)
    array = onnx.numpy_helper.to_array(tensor).copy()
    array.reshape(-1)[-1] = value
    tensor.CopyFrom(onnx.numpy_helper.from_array(array, name))
    survives(lambda: import_onnx(model))


@pytest.mark.parametrize("scale", [0.0, -1.0, 1e30, float("nan"), float("inf"), 1e-30, 1.5, 1e6])
def test_hostile_scales(scale: float) -> None:
    model = sample()
    constant_tensor(model, "scales").CopyFrom(
        onnx.numpy_helper.from_array(np.asarray([1, 1, scale, 2], np.float32), "scales")
    )
    survives(lambda: import_onnx(model))


def test_the_sample_itself_is_sound() -> None:
    assert survives(lambda: import_onnx(sample()))
