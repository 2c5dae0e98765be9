"""Networks are brought to other batches and sizes, deeper and smaller, and still compute the same of the same."""

from __future__ import annotations

import numpy as np
import onnx
import pytest

from .blocks import drawn_net
from .cases import FAMILIES, drawn
from .depth import block_of, repeated
from .graph import run_onnx
from .shrink import Sample
from .shrink_sizes import renumbered, smaller
from .sizes import enlarged, resized, shapes_of

_PICTURES = ("vgg", "resnet", "mobilenet_v2", "shufflenet", "yolo_anchors", "unet", "super_resolution", "retinanet")
_FIXED_SIZE = {"vgg": "Conv", "yolo_anchors": "Pow"}
"""Fully connected layers and grids have one size: nodes of networks with such."""


def _sample(family: str, seed: int = 3) -> Sample:
    case = drawn(seed, family)
    return Sample(case.model, case.data)


@pytest.mark.parametrize("family", ["vit", "swin", "crnn", "ssd", "mobilenet_v3", "decoder", "tcn", "convnext"])
def test_another_batch_computes_the_same_of_each_sample(family: str) -> None:
    sample = _sample(family)
    shapes = shapes_of(sample.model)
    one = resized(sample, {name: (1, *shape[1:]) for name, shape in shapes.items()})
    two = resized(sample, {name: (2, *shape[1:]) for name, shape in shapes.items()})
    assert one is not None and two is not None
    first = {name: value[:1] for name, value in sample.data.items()}
    pair = {name: np.concatenate([value, value]) for name, value in first.items()}
    for alone, both in zip(run_onnx(one.model, first), run_onnx(two.model, pair)):
        joined = [np.concatenate([alone, alone], axis) for axis in range(alone.ndim)]
        assert any(each.shape == both.shape and np.allclose(each, both, 1e-3, 1e-3) for each in joined)


@pytest.mark.parametrize("family", _PICTURES)
def test_larger_pictures_are_valid_unless_a_size_is_fixed(family: str) -> None:
    case = next(
        case
        for case in (drawn(seed, family) for seed in range(50))
        if case.batch["x"].shape[-2] % 32 == 0
        and _FIXED_SIZE.get(family, "Conv") in {node.op_type for node in case.model.graph.node}
    )
    sample = Sample(case.model, case.data)
    larger = enlarged(sample, 2)
    if family in _FIXED_SIZE:
        assert larger is None
        return
    assert larger is not None
    onnx.checker.check_model(larger.model, full_check=True)
    assert all(np.isfinite(value).all() for value in run_onnx(larger.model, larger.batch))
    old, new = shapes_of(sample.model)["x"], shapes_of(larger.model)["x"]
    assert np.prod(new) == 4 * np.prod(old)


@pytest.mark.parametrize("family", FAMILIES)
def test_a_deeper_network_has_its_block_repeated(family: str) -> None:
    """Scales of a Resize are no weights, and where the block ends in an output the copies do."""
    samples = (_sample(family, seed) for seed in range(3, 8))
    sample, block = next(((each, block) for each in samples if (block := block_of(each.model))), (None, None))
    if sample is None or block is None:
        return
    deeper = repeated(sample.model, block, 3)
    onnx.checker.check_model(deeper, full_check=True)
    assert _nodes_needed(deeper) == _nodes_needed(sample.model) + 2 * len(block[2])
    shallow, deep = run_onnx(sample.model, sample.batch), run_onnx(deeper, sample.batch)
    assert [each.shape for each in shallow] == [each.shape for each in deep]


def _nodes_needed(model: onnx.ModelProto) -> int:
    """How many nodes the outputs depend on."""
    needed, count = {out.name for out in model.graph.output}, 0
    for node in reversed(model.graph.node):
        if needed.intersection(node.output):
            needed.update(node.input)
            count += 1
    return count


def _windows() -> Sample:
    """48 channels, depthwise, then 10."""
    net = drawn_net(np.random.default_rng(0), ((16, 20),), (4,))
    net.exporter = "torch"
    x = net.conv(net.image(), 48)
    net.g.outputs = [net.conv(net.depthwise(x), 10, 1)]
    return Sample(net.g.model(), {name: np.concatenate([value, value]) for name, value in net.g.inputs.items()})


def _outputs(sample: Sample) -> list[int]:
    """Output channels of convolutions."""
    return [each.dims[0] for each in sample.model.graph.initializer if len(each.dims) == 4]


def test_a_network_has_fewer_channels_wherever_their_number_stands() -> None:
    fewer = renumbered(_windows(), {48: 5})
    assert fewer is not None
    onnx.checker.check_model(fewer.model, full_check=True)
    assert _outputs(fewer) == [5, 5, 10]
    assert run_onnx(fewer.model, fewer.batch)[0].shape[1] == 10


def test_what_fails_on_one_sample_of_a_small_picture_is_shrunk_to_that() -> None:
    def fails(candidate: Sample) -> bool:
        return min(shapes_of(candidate.model)["x"][2:]) >= 3 and max(_outputs(candidate)) >= 6

    small = smaller(_windows(), fails, 200)
    count, _, *size = shapes_of(small.model)["x"]
    assert count == 1 and max(size) <= 5 and max(_outputs(small)) == 6
    assert all(np.isfinite(value).all() for value in run_onnx(small.model, small.batch))


@pytest.mark.parametrize(
    "family", [pytest.param(one, marks=[pytest.mark.sweep] if one == "diffusion" else []) for one in FAMILIES]
)
def test_sizes_of_every_family_change_or_are_said_to_be_fixed(family: str) -> None:
    sample = _sample(family, 5)
    for shape in ((1,), (4,)):
        made = resized(sample, {name: (*shape, *old[1:]) for name, old in shapes_of(sample.model).items()})
        if made is not None:
            assert all(np.isfinite(value).all() for value in run_onnx(made.model, made.batch))
