"""Calibration files: what is accepted, and what each mistake is called."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import bmcompiler
from bmcompiler.errors import CalibrationError
from bmcompiler.inputs import InputData, open_inputs
from bmcompiler.ir import Function, TensorType
from bmcompiler.quant.data import batches, check_data

NET = Function("net", [TensorType((1, 2, 3, 3))], ["data"])
GOOD = np.random.default_rng(0).normal(size=(5, 2, 3, 3)).astype(np.float32)


def checked(array: object, function: Function = NET, name: str = "data") -> dict[str, np.ndarray]:
    return check_data(function, InputData({name: np.asarray(array)}, "calib.npz"))


def test_samples_lie_on_axis_0(tmp_path: Path) -> None:
    np.savez(tmp_path / "c.npz", data=GOOD)
    found = check_data(NET, open_inputs(tmp_path / "c.npz"))
    np.testing.assert_array_equal(found["data"], GOOD)


def test_compressed_and_fortran_ordered_files_read_alike(tmp_path: Path) -> None:
    np.savez_compressed(tmp_path / "c.npz", data=np.asfortranarray(GOOD))
    np.testing.assert_array_equal(open_inputs(tmp_path / "c.npz").arrays["data"], GOOD)


@pytest.mark.parametrize("dtype", [np.float64, np.float16, np.uint8, np.int32, np.bool_])
def test_numbers_are_real_values_as_they_are(dtype: type) -> None:
    found = checked((GOOD * 50).clip(0, 200).astype(dtype))["data"]
    assert found.dtype == np.float32
    np.testing.assert_array_equal(found, (GOOD * 50).clip(0, 200).astype(dtype).astype(np.float32))


@pytest.mark.parametrize(
    ("array", "words"),
    [
        (GOOD[0], ["shape [2, 3, 3]", "(samples, 2, 3, 3)"]),
        (GOOD.reshape(5, 3, 3, 2), ["shape [5, 3, 3, 2]", "(samples, 2, 3, 3)"]),
        (GOOD[:0], ["no sample"]),
        (np.where(GOOD > 2, np.nan, GOOD), ["NaN"]),
        (np.full((2, 2, 3, 3), 1e300), ["NaN, infinity or values beyond f32"]),
        (np.zeros((4, 2, 3, 3)), ["constant", "0 everywhere"]),
        (np.full((2, 2, 3, 3), "a"), ["<U1", "numbers"]),
        (GOOD.astype(complex), ["complex128"]),
    ],
)
def test_data_that_cannot_be_right_say_why(array: np.ndarray, words: list[str]) -> None:
    with pytest.raises(CalibrationError) as error:
        checked(array)
    for word in ("calib.npz", "'data'", *words):
        assert word in str(error.value)
    assert "\n" not in str(error.value)


def test_lists_are_arrays() -> None:
    np.testing.assert_array_equal(check_data(NET, {"data": GOOD.tolist()})["data"], GOOD)


@pytest.mark.parametrize(
    ("given", "found"),
    [(None, "holds object, expected numbers"), ("c.npz", "holds <U5"), ([[1.0], [1.0, 2.0]], "different lengths")],
)
@pytest.mark.parametrize("target", ["bm1880", "dv700"])
def test_what_makes_no_array_is_said_by_every_compilation(
    target: str, given: object, found: str, tmp_path: Path
) -> None:
    model = helper.make_model(
        helper.make_graph(
            [helper.make_node("Relu", ["x"], ["y"])],
            "net",
            [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 4])],
            [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 4])],
        ),
        ir_version=8,
        opset_imports=[helper.make_opsetid("", 13)],
    )
    onnx.save(model, tmp_path / "net.onnx")
    with pytest.raises(CalibrationError, match=f"'x'.*{found}"):
        bmcompiler.compile(tmp_path / "net.onnx", target=target, data={"x": given})


def test_names_must_be_those_of_the_inputs() -> None:
    with pytest.raises(
        CalibrationError, match=r"no array is called 'data' \(found: image\).*one array per network input"
    ):
        checked(GOOD, name="image")
    with pytest.raises(CalibrationError, match="'labels' belongs to no input that the network reads"):
        check_data(NET, {"data": GOOD, "labels": np.arange(5)})


def test_all_inputs_need_the_same_number_of_samples() -> None:
    function = Function("net", [TensorType((1, 3)), TensorType((1, 2))], ["a", "b"])
    with pytest.raises(CalibrationError, match="'a' 4, 'b' 5"):
        check_data(function, {"a": np.eye(4)[:, :3], "b": np.eye(5)[:, :2]})


def test_integer_inputs_take_whole_numbers_in_range() -> None:
    function = Function("net", [TensorType((1, 2), "i8")], ["data"])
    assert checked([[1.0, -3.0]], function)["data"].dtype == np.int8
    with pytest.raises(CalibrationError, match="fractions"):
        checked([[1.5, 0]], function)
    with pytest.raises(CalibrationError, match=r"-128\.\.127"):
        checked([[1, 200]], function)


def test_files_that_are_no_npz_of_numbers(tmp_path: Path) -> None:
    path = tmp_path / "c.npz"
    np.savez(path, data=np.array([{}, None], dtype=object))
    with pytest.raises(CalibrationError, match=r"array 'data' cannot be read.*object"):
        open_inputs(path)
    path.write_bytes(b"not a zip at all")
    with pytest.raises(CalibrationError, match="not an npz file"):
        open_inputs(path)
    np.savez(path)
    with pytest.raises(CalibrationError, match="no array"):
        open_inputs(path)


def test_every_truncation_and_many_mutations_end_in_one_line(tmp_path: Path) -> None:
    path = tmp_path / "c.npz"
    np.savez_compressed(path, data=GOOD[:2])
    original = path.read_bytes()
    random = np.random.default_rng(1)
    changed = [original[:n] for n in range(0, len(original), 7)]
    for _ in range(1000):
        data = bytearray(original)
        for position in random.integers(0, len(data), 3):
            data[position] = random.integers(256)
        changed.append(bytes(data))
    for data in changed:
        path.write_bytes(data)
        try:
            check_data(NET, open_inputs(path))
        except CalibrationError as error:
            assert "\n" not in str(error)


def test_batches_fill_the_last_step_with_the_first_samples() -> None:
    steps = list(batches({"data": np.arange(5)}, {"data": 2}))
    assert [step["data"].tolist() for step in steps] == [[0, 1], [2, 3], [4, 0]]


def test_an_array_of_an_input_that_no_layer_reads_is_said_so(tmp_path: Path) -> None:
    """Files declare inputs that nothing reads: lengths that only training used."""
    sizes = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, 3]) for name in ("x", "length", "y")]
    graph = helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "net", sizes[:2], sizes[2:])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9), tmp_path / "n.onnx")
    data = {name: np.arange(12, dtype=np.float32).reshape(4, 3) for name in ("x", "length")}
    with pytest.raises(CalibrationError, match=r"'length' belongs to no input that the network reads.*inputs are: x"):
        bmcompiler.compile(tmp_path / "n.onnx", target="bm1684x", quantize="int8", data=data)
