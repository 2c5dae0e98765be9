"""Networks on the DV700 in fp16: through the driver with the bits of `evaluate`, from files, with float's accuracy."""

from __future__ import annotations

import gc
import importlib
from concurrent.futures import ThreadPoolExecutor
from copy import deepcopy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from dv_nets import Arrays, net, weights
from fetched import third_party

import bmcompiler
from bmcompiler.backends.dv.target import TARGET
from bmcompiler.bmodel import load, save
from bmcompiler.bmodel.bm168x import Bm168xModel, TpuSubnet
from bmcompiler.cli.common import run
from bmcompiler.errors import FileFormatError, SimulatorError, UnsupportedError
from bmcompiler.interpreter import run_module
from bmcompiler.ir import Module, Value
from bmcompiler.ops.builder import Builder
from bmcompiler.runtime import Session
from bmcompiler.runtime.dmp_dv import dmp_dv_mem_get_total_size
from bmcompiler.target import unsupported_reason

MODELS = Path(__file__).resolve().parent.parent.parent / "models"
NETS = {
    "lenet": ("lenet/deploy.prototxt", "lenet/lenet.caffemodel"),
    "resnet8": ("resnet8/resnet8_mnist.onnx", None),
}
ON_CPU = {"lenet": {"softmax"}, "resnet8": set[str]()}


def compiled(name: str, batch: int) -> Any:
    model, weights = (None if path is None else MODELS / path for path in NETS[name])
    return bmcompiler.compile(model, weights, target="dv700", quantize="f16", shapes=[[batch, 1, 28, 28]])


def assert_device_equals_evaluate(module: Module, model: Bm168xModel, inputs: Arrays) -> Arrays:
    found = Session(model).run(inputs, raw=True)
    for name, expected in run_module(module, inputs, target=TARGET).items():
        assert found[name].tobytes() == expected.tobytes(), f"output {name} differs"
    return found


@pytest.mark.parametrize("batch", [1, 3])
@pytest.mark.parametrize("name", NETS)
def test_networks_give_the_bits_of_evaluate_from_a_file(name: str, batch: int, tmp_path: Path) -> None:
    result = compiled(name, batch)
    assert {row.kind for row in result.rows if row.where == "cpu"} == ON_CPU[name]
    save(result.model, tmp_path / "net.bmodel")
    model = load(tmp_path / "net.bmodel")
    assert isinstance(model, Bm168xModel) and model.chip == "DV700"
    (input_name,) = result.module.main.input_names
    data = np.load(MODELS / "digits.npz")["test"][:batch].astype(np.float32).reshape(batch, 1, 28, 28) / 255
    assert_device_equals_evaluate(result.module, model, {input_name: data})


FETCHED = {
    "mtcnn_pnet.onnx": (1, 120, 160, 3),
    "mtcnn_rnet.onnx": (1, 24, 24, 3),
    "mtcnn_onet.onnx": (1, 48, 48, 3),
    "ppocr_v2_cls.onnx": (1, 3, 48, 192),
    "light_squeezenet.onnx": (1, 3, 224, 224),
    "light_resnet50.onnx": (1, 3, 224, 224),
    "light_inception_v1.onnx": (1, 3, 224, 224),
    "light_densenet121.onnx": (1, 3, 224, 224),
    "res10_ssd_face.prototxt": (1, 3, 300, 300),
}


CUT = {"res10_ssd_face.prototxt": ["mbox_loc", "mbox_conf_softmax"]}
"""Before the list of detections, whose order small differences change."""


LARGE = ("light_resnet50.onnx", "light_densenet121.onnx", "light_inception_v1.onnx")
"""They have no kind of layer that the others have not."""


@pytest.mark.parametrize(
    "file", [pytest.param(file, marks=pytest.mark.sweep if file in LARGE else pytest.mark.slow) for file in FETCHED]
)
def test_fetched_networks_are_close_to_float(file: str) -> None:
    """The bits of `evaluate`, and results within 0.5 % of the largest value in float."""
    path = MODELS / "third_party" / file
    if not path.exists():
        pytest.skip(f"{file} is not fetched: run `make models`")
    weights = path.with_suffix(".caffemodel") if path.suffix == ".prototxt" else None
    result = bmcompiler.compile(path, weights, target="dv700", shapes=[list(FETCHED[file])], outputs=CUT.get(file))
    (input_name,) = result.module.main.input_names
    inputs = {input_name: np.random.default_rng(7).standard_normal(FETCHED[file]).astype(np.float32)}
    found = assert_device_equals_evaluate(result.module, result.model, inputs)
    for name, expected in run_module(result.module, inputs).items():
        assert np.abs(found[name] - expected).max() <= 0.005 * np.abs(expected).max(), name


@pytest.mark.parametrize("name", NETS)
def test_digits_keep_their_accuracy(name: str) -> None:
    """Within 0.2 points of float on the test digits."""
    data = np.load(MODELS / "digits.npz")
    images = data["test"].astype(np.float32).reshape(-1, 1, 28, 28) / 255
    model, weights = (None if path is None else MODELS / path for path in NETS[name])
    network = bmcompiler.load_network(model, weights, shapes=[images.shape])
    (input_name,) = network.main.input_names
    session = Session(compiled(name, 20).model)

    def right(outputs: Arrays) -> float:
        (scores,) = outputs.values()
        return float((scores.reshape(len(images), -1).argmax(axis=1) == data["labels"]).mean())

    assert right(session.run({input_name: images})) >= right(run_module(network, {input_name: images})) - 0.002


def test_commands_compile_run_and_show_a_model(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    digits = np.load(MODELS / "digits.npz")
    np.savez(tmp_path / "test.npz", data=digits["test"][:20].astype(np.float32) / 255)
    model, out = str(tmp_path / "net.bmodel"), str(tmp_path / "out.npz")
    files = [str(MODELS / path) for path in NETS["lenet"] if path]
    for name, *arguments in (
        ["compile", *files, "--target", "dv700", "-o", model],
        ["run", model, "--data", str(tmp_path / "test.npz"), "-o", out],
        ["tool", "info", model],
        ["tool", "dis", model],
    ):
        assert run(importlib.import_module(f"bmcompiler.cli.{name}").cli, name, arguments) == 0, arguments
    text = capsys.readouterr().out
    assert "chip: DV700" in text and "bytes of commands" in text
    assert "conv 5x5, max pool 2x2, stride 2x2" in text and "run 0 -> output" in text
    assert "CONV 1 x 1 x 800" in text and "# host subnet" in text
    assert (np.load(out)["prob"].reshape(20, 10).argmax(1) == digits["labels"][:20]).mean() >= 0.95


def test_eight_threads_run_models_at_once() -> None:
    """Each has a session of its own on the one device; results are those of a lone session."""
    models = [compiled(name, 2).model for name in NETS]
    digits = np.load(MODELS / "digits.npz")["test"][:16].astype(np.float32).reshape(8, 2, 1, 28, 28) / 255
    names = [model.nets[0].stages[0].inputs[0].name for model in models]
    lone = [Session(model) for model in models]
    expected = [[session.run({name: x}) for x in digits] for session, name in zip(lone, names)]

    def work(number: int) -> None:
        session = Session(models[number % 2])
        for turn in range(8):
            found = session.run({names[number % 2]: digits[(number + turn) % 8]})
            for name, array in expected[number % 2][(number + turn) % 8].items():
                assert found[name].tobytes() == array.tobytes()

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(8)))


# Runs that the documented limits do not allow to pass on their result: what their notes say.
BY_LIMITS = ("of a unified buffer of", "writes the unified buffer but needs")


@pytest.mark.slow
def test_runs_of_resnet50_keep_their_results_on_the_chip() -> None:
    """At least 70 % of the runs that may, by the documented limits, pass on their result, or add or pool at once."""
    rows = bmcompiler.compile(third_party("light_resnet50.onnx"), target="dv700", shapes=[[1, 3, 224, 224]]).rows
    runs = [row for row in rows if row.where == "dv700"]
    joined = [row for row in runs if "+add" in row.kind or "+max_pool" in row.kind or not row.stored]
    barred = [row for row in runs if row not in joined and any(text in row.note for text in BY_LIMITS)]
    assert len(joined) == 38 and len(joined) >= 0.7 * (len(runs) - len(barred))
    assert all(row.note for row in runs)


# -- single ops -------------------------------------------------------------------------------------------------------
MAP = (2, 9, 11, 10)
ON_DEVICE: dict[str, Any] = {
    "conv": lambda b, x: b.conv(x, weights(b, 5, 9, 3, 2), weights(b, 5), pads=(1, 0, 2, 1), strides=(2, 1)),
    "conv relu6": lambda b, x: b.conv(x, weights(b, 17, 9, 1, 1), activation="relu6"),
    "depthwise": lambda b, x: b.conv(x, weights(b, 9, 1, 5, 5), group=9, pads=(2, 2, 2, 2)),
    "dilated": lambda b, x: b.conv(x, weights(b, 3, 9, 3, 3), pads=(2, 2, 2, 2), dilations=(2, 2)),
    "max pool": lambda b, x: b.max_pool(x, kernel=(3, 3), strides=(2, 2), pads=(1, 0, 1, 0), ceil_mode=True),
    "avg pool": lambda b, x: b.avg_pool(x, kernel=(3, 5), strides=(2, 1)),
    "add": lambda b, x: b.add(x, b.max_pool(x, kernel=(3, 3), pads=(1, 1, 1, 1))),
    "add relu": lambda b, x: b.add(x, x, activation="relu"),
    "fc of a map": lambda b, x: b.matmul(
        b.reshape(b.add(x, x), shape=(2, 990)), weights(b, 990, 7), weights(b, 7), activation="relu"
    ),
    "fc of a flat input": lambda b, x: b.matmul(b.reshape(x, shape=(2, 990)), weights(b, 7, 990), transpose_right=True),
}


@pytest.mark.parametrize("name", ON_DEVICE)
def test_ops_give_the_bits_of_evaluate(name: str) -> None:
    module = net(ON_DEVICE[name], MAP)
    made = TARGET.compile([module], 2)
    assert {row.where for row in made.rows} == {"dv700"}, [row.reason for row in made.rows]
    data = np.random.default_rng(1).standard_normal(MAP).astype(np.float32)
    (found,) = assert_device_equals_evaluate(module, made.model, {"x0": data}).values()
    np.testing.assert_allclose(found, run_module(module, {"x0": data})["y0"], atol=0.25, rtol=0.01)


def test_device_and_host_take_turns_and_outputs_may_be_inputs() -> None:
    """A map that the host and two runs of device ops read; an output that is an input, and one that is listed twice."""

    def build(b: Builder, x: Value) -> tuple[Value, ...]:
        first = b.conv(x, weights(b, 9, 9, 1, 1))
        on_host = b.softmax(first, axis=1)
        last = b.add(on_host, first)
        return last, x, first, last

    module = net(build, MAP)
    made = TARGET.compile([module], 2)
    assert [row.where for row in made.rows] == ["dv700", "cpu", "dv700"]
    data = np.random.default_rng(2).standard_normal(MAP).astype(np.float32)
    found = assert_device_equals_evaluate(module, made.model, {"x0": data})
    assert found["y1"].tobytes() == data.tobytes() and found["y0"].tobytes() == found["y3"].tobytes()


REFUSED: dict[str, tuple[Any, str]] = {
    "kernel": (lambda b, x: b.conv(x, weights(b, 2, 9, 8, 8)), "kernel 8 x 8 is outside 1 to 7"),
    "window": (lambda b, x: b.max_pool(x, kernel=(4, 1)), "max pooling window 1 x 4"),
    "count": (lambda b, x: b.avg_pool(x, kernel=(3, 3), pads=(1, 1, 1, 1)), "Every window must count"),
    "stride": (lambda b, x: b.conv(x, weights(b, 2, 9, 1, 1), strides=(256, 1)), "does not fit 8 bits"),
    "broadcast": (lambda b, x: b.add(x, weights(b, 9, 1, 1)), "must not be constants"),
    "no kernel": (lambda b, x: b.softmax(x, axis=1), "dv700 has no kernel for 'softmax'"),
    "layout": (
        lambda b, x: b.add(*[b.reshape(b.max_pool(x, kernel=(2, 2)), shape=(2, 9, 9, 10))] * 2),
        "in the shape they were computed in",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_does_not_fit_runs_on_the_host_and_says_why(name: str) -> None:
    build, text = REFUSED[name]
    module = net(build, MAP)
    op = [op for op in module.main.ops if op.name not in ("func.return", "tensorop.reshape")][-1]
    assert text in str(unsupported_reason(TARGET, op))
    made = TARGET.compile([module], 2)
    assert made.rows[-1].where == "cpu"
    data = np.random.default_rng(3).standard_normal(MAP).astype(np.float32)
    assert_device_equals_evaluate(module, made.model, {"x0": data})


def test_weights_beyond_fp16_are_an_error() -> None:
    module = net(lambda b, x: b.conv(x, b.weight(np.full((1, 9, 1, 1), 1e5, np.float32))), MAP)
    with pytest.raises(UnsupportedError, match="beyond the range of fp16"):
        TARGET.compile([module], 2)


# -- damaged models, memory -------------------------------------------------------------------------------------------
def small_model() -> Bm168xModel:
    model: Bm168xModel = TARGET.compile([net(ON_DEVICE["conv"], MAP)], 2).model
    return deepcopy(model)


def device_subnet(model: Bm168xModel) -> TpuSubnet:
    (subnet,) = model.nets[0].stages[0].subnets
    assert isinstance(subnet, TpuSubnet)
    return subnet


def run_zeros(model: Bm168xModel) -> None:
    Session(model).run({"x0": np.zeros(MAP, np.float32)})


def test_tensors_outside_their_memory_are_refused() -> None:
    for name in ("address", "cpu_address"):
        model = small_model()
        setattr(device_subnet(model).inputs[0], name, 1 << 20)
        with pytest.raises(FileFormatError, match="of a memory of"):
            run_zeros(model)
    model = small_model()
    model.nets[0].stages[0].inputs[0].cpu_address = 1 << 20
    with pytest.raises(FileFormatError):
        run_zeros(model)


def test_damaged_commands_are_refused() -> None:
    def changed(at: int, value: int) -> Bm168xModel:
        model = small_model()
        (group,) = device_subnet(model).source["cmd_group"]
        data = bytearray(group["binary_bdc"])
        data[at] = value
        group["binary_bdc"] = bytes(data)
        return model

    with pytest.raises(FileFormatError, match="something else than commands"):
        run_zeros(changed(4, 77))
    with pytest.raises(FileFormatError, match="uses memory 9"):
        run_zeros(changed(8, 9))
    with pytest.raises(SimulatorError, match="the driver refuses a command"):
        run_zeros(changed(19, 0xFF))  # of the offset of the input


def test_device_memory_is_given_back() -> None:
    gc.collect()
    before = dmp_dv_mem_get_total_size()
    model = small_model()
    session = Session(model)
    session.run({"x0": np.zeros(MAP, np.float32)})
    assert dmp_dv_mem_get_total_size() > before
    del session
    gc.collect()
    assert dmp_dv_mem_get_total_size() == before
