"""Compiled models of sizes that vary: what they take, what they give, what they weigh, and what they refuse."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper
from size_nets import model

import bmcompiler
from bmcompiler.bmodel import loads
from bmcompiler.cli import tool
from bmcompiler.cli.common import run as run_command
from bmcompiler.errors import RuntimeUseError, ShapeError
from bmcompiler.result import Result
from bmcompiler.runtime import Session

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "models"))
from transformers import transformer  # noqa: E402

onnxruntime = pytest.importorskip("onnxruntime")
LENET = (ROOT / "models/lenet/deploy.prototxt", ROOT / "models/lenet/lenet.caffemodel")
BUCKETS, LARGEST = "[[1,n={32,64,128}],[1,n]]", "[[1,128],[1,128]]"


def _tokens(length: int, seed: int = 0, count: int = 1) -> dict[str, np.ndarray]:
    ids = np.random.default_rng(seed).integers(1, 512, (count, length))
    return {"ids": ids, "mask": np.ones_like(ids)}


def _error(found: np.ndarray, wanted: np.ndarray) -> float:
    assert found.shape == wanted.shape
    return float(np.linalg.norm(found - wanted) / np.linalg.norm(wanted))


@pytest.fixture(scope="module")
def bert(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return transformer("bert_short", tmp_path_factory.mktemp("bert"))


@pytest.fixture(scope="module")
def of_three_lengths(bert: Path) -> Callable[[str], Result]:
    """The transformer in f32 for a chip, proven; most tests run it."""

    @cache
    def compiled(target: str) -> Result:
        return bmcompiler.compile(bert, target=target, quantize="f32", shapes=BUCKETS, check="always")

    return compiled


@pytest.mark.parametrize("target", [pytest.param("bm1684", marks=pytest.mark.sweep), "bm1684x"])
def test_a_transformer_takes_every_length_and_weighs_as_one(
    bert: Path, of_three_lengths: Callable[[str], Result], target: str
) -> None:
    whole = of_three_lengths(target)
    alone = bmcompiler.compile(bert, target=target, quantize="f32", shapes=LARGEST, check="never")
    assert whole.checked is not None and (whole.checked.programs, whole.checked.samples) == (3, 1)
    assert len(whole.to_bytes()) < 1.05 * len(alone.to_bytes())
    read = loads(whole.to_bytes(), "the model")
    assert [len(each) for each in read.weight_sets] == [len(alone.model.weight_sets[0])]
    assert len({id(stage.coefficients) for _, stage in read.all_stages()}) == 1  # of one memory, in a session too
    session = Session(read)
    held = {program.coefficients.ctypes.data for program in session._programs}
    assert len(held) == 1
    net = onnxruntime.InferenceSession(bert)
    for length in (1, 2, 31, 32, 33, 64, 65, 100, 127, 128):
        given = _tokens(length, length)
        assert _error(session.run(given)["layer1/norm2"], net.run(None, given)[0]) < 1e-5, length
    many = session.run(_tokens(50, count=3))["layer1/norm2"]
    one = session.run({name: array[1:2] for name, array in _tokens(50, count=3).items()})["layer1/norm2"]
    assert many.shape == (3, 50, 128) and np.array_equal(many[1:2], one)


@pytest.mark.parametrize(
    ("name", "target", "quantize"),
    [
        pytest.param("bert_any", "bm1684x", "int8", marks=pytest.mark.sweep),
        ("bert_wide", "bm1684x", "f16"),
        pytest.param("bert_wide", "bm1880", "int8", marks=pytest.mark.sweep),
    ],
)
def test_narrow_weights_do_not_make_three_programs_heavy(name: str, target: str, quantize: str, tmp_path: Path) -> None:
    """Of 128 channels, commands of two more programs are 0.09 of the bytes of weights on the BM1880, of 384 0.02.

    In f16 on the BM1684X, where products are cut along columns, they are 0.053 and 0.008.
    """
    net = transformer(name, tmp_path)
    given = {"data": _tokens(128, 5, 2)} if quantize == "int8" else {}
    three, one = (
        bmcompiler.compile(net, target=target, quantize=quantize, shapes=shapes, check="never", max_cycles=1, **given)
        for shapes in (BUCKETS, LARGEST)
    )
    assert len(three.to_bytes()) / len(one.to_bytes()) < 1.05


def test_padding_gives_what_the_exact_program_gives(bert: Path, of_three_lengths: Callable[[str], Result]) -> None:
    exact = bmcompiler.compile(bert, target="bm1684x", quantize="f32", shapes="[[1,50],[1,50]]", check="never")
    given = _tokens(50, 4)
    assert _error(of_three_lengths("bm1684x").run(given)["layer1/norm2"], exact.run(given)["layer1/norm2"]) < 1e-5


@pytest.mark.parametrize("target", ["bm1684x", "bm1880"])
def test_int8_has_one_quantization_for_all_lengths(bert: Path, target: str, tmp_path: Path) -> None:
    """Padded, a length is as far from float as its own program of the same thresholds is."""
    data = _tokens(128, 5, 12)
    data["mask"] = (np.arange(128) < np.random.default_rng(0).integers(16, 129, (12, 1))).astype(np.int64)
    data["ids"] *= data["mask"]
    whole = bmcompiler.compile(bert, target=target, quantize="int8", data=data, shapes="[[1,n={40,128}],[1,n]]")
    first, second = whole.model.stages()
    for one, other in zip((*first.inputs, *first.outputs), (*second.inputs, *second.outputs)):
        assert (one.scale, one.zero_point, one.threshold) == (other.scale, other.zero_point, other.threshold)
    assert len(whole.model.weight_sets) == 1
    alone = whole.model.select(0)  # 128 tokens: 40 are padded
    net, errors = onnxruntime.InferenceSession(bert), []
    for seed in range(4):
        given = _tokens(40, seed)
        wanted = net.run(None, given)[0]
        errors.append([_error(Session(each).run(given)["layer1/norm2"], wanted) for each in (alone, whole.model)])
    padded, exact = np.mean(errors, axis=0)
    assert padded < 1.25 * exact + 0.01


@pytest.mark.parametrize(
    ("target", "quantize"), [("bm1684", None), ("bm1684x", "f16"), ("bm1880", "int8"), ("dv700", None)]
)
def test_batches_from_one_to_sixteen(target: str, quantize: str | None) -> None:
    samples = np.random.default_rng(0).random((37, 1, 28, 28), np.float32)
    given = {"data": {"data": samples}} if quantize == "int8" else {}
    result = bmcompiler.compile(*LENET, target=target, quantize=quantize, shapes="[[{1,4,16},1,28,28]]", **given)
    session = Session(result.to_bytes())
    wanted = np.concatenate([session.run(samples[k : k + 1])["prob"] for k in range(37)])
    for count in (1, 3, 4, 15, 16, 17, 37):
        np.testing.assert_allclose(session.run(samples[:count])["prob"], wanted[:count], atol=1e-3)


def test_images_need_a_size_that_exists_and_are_told_why(tmp_path: Path) -> None:
    path = model(
        lambda g: g.op("Conv", g.op("Unsqueeze", "x", g.const([0], np.int64)), g.const(np.ones((2, 1, 3, 3)))),
        str(tmp_path / "net.onnx"),
    )
    result = bmcompiler.compile(path, target="bm1684x", shapes="[[1,320..384:32,8]]")
    for length in (320, 352, 384):
        assert result.run(np.ones((1, length, 8), np.float32)).popitem()[1].shape[2] == length - 2
    with pytest.raises(
        RuntimeUseError, match=r"axis 1 of 'x' has to be 320, 352 or 384, .*layer 'conv\d' \(conv\) mixes"
    ):
        result.run(np.ones((1, 330, 8), np.float32))


def test_masks_say_what_is_seen_beside_padding(bert: Path, of_three_lengths: Callable[[str], Result]) -> None:
    """Tokens that the caller hides stay hidden: padding is only more of them."""
    result = of_three_lengths("bm1684x")
    given = _tokens(45, 1)
    given["mask"][:, 30:] = 0
    wanted = onnxruntime.InferenceSession(bert).run(None, given)[0]
    assert _error(result.run(given)["layer1/norm2"][:, :30], wanted[:, :30]) < 1e-5


def test_lengths_that_disagree_or_are_too_long_are_refused(of_three_lengths: Callable[[str], Result]) -> None:
    session = of_three_lengths("bm1684x")
    for lengths in ((40, 41), (129, 129), (0, 0)):
        given = {"ids": np.ones((1, lengths[0]), int), "mask": np.ones((1, lengths[1]), int)}
        with pytest.raises(RuntimeUseError, match=r"do not fit the model, which takes .*128.* or .*64.* or .*32"):
            session.run(given)


def test_sizes_that_belong_together_are_told_to_have_one_name(bert: Path) -> None:
    with pytest.raises(ShapeError, match=r"do not broadcast.*need one name: \[\[1,n="):
        bmcompiler.compile(bert, target="bm1684x", shapes="[[1,{32,64}],[1,{32,64}]]")


def test_what_has_a_fixed_size_in_the_net_is_told_apart_from_sizes_without_a_name(tmp_path: Path) -> None:
    ids = [helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [1, "n"]) for name in ("a", "b")]
    positions = numpy_helper.from_array(np.zeros((1, 32), np.float32), "positions")
    nodes = [helper.make_node("Add", ["a", "positions"], ["s"]), helper.make_node("Add", ["s", "b"], ["y"])]
    outputs = [helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, [1, "n"])]
    onnx.save(helper.make_model(helper.make_graph(nodes, "net", ids, outputs, [positions])), tmp_path / "net.onnx")
    for shapes, remedy in (("[[1,n={16,32}],[1,n]]", "a fixed size"), ("[[1,{16,32}],[1,{16,32}]]", "one name: ")):
        with pytest.raises(ShapeError, match=f"do not broadcast.*{remedy}"):
            bmcompiler.compile(tmp_path / "net.onnx", target="bm1684x", shapes=shapes)


def test_info_shows_the_sizes(
    of_three_lengths: Callable[[str], Result], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "bert.bmodel"
    file.write_bytes(of_three_lengths("bm1684x").to_bytes())
    assert run_command(tool.cli, "bmnet-tool", ["info", str(file)]) == 0
    line = "sizes: axis 1 of ids, axis 1 of mask: 32, 64, 128; others are filled up with zeros to the next larger"
    assert line in capsys.readouterr().out.splitlines()
