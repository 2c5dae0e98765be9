"""What is wrong with a file is said in one line that names file, layer and reason; mutated files do no worse."""

from __future__ import annotations

import random as stdlib_random
from pathlib import Path

import numpy as np
import pytest
from caffe_nets import caffemodel, header, layer, load, random, save

from bmcompiler.errors import BMError, FileFormatError, ShapeError, UnsupportedError
from bmcompiler.frontends.caffe import import_caffe
from bmcompiler.frontends.caffe.files import read_net

ROOT = Path(__file__).parents[3]
CONV = header((1, 3, 6, 6)) + layer("Convolution", "convolution_param { num_output: 2 kernel_size: 3 }")
RELU = header((1, 2)) + layer("ReLU", name="a", top="x")


def test_unknown_layer_names_itself_its_neighbours_and_a_remedy(tmp_path: Path) -> None:
    text = RELU + layer("Convolutional", name="c", bottom="x")
    with pytest.raises(UnsupportedError) as raised:
        load(tmp_path, text)
    assert str(raised.value).startswith(
        f"{tmp_path}/net.prototxt: layer 'c' (Convolutional): layers of type 'Convolutional' are not supported; "
        "the nearest supported types: Convolution, Deconvolution, "
    )
    assert str(raised.value).endswith(
        '. Remedy: pass outputs=["x"] to end the net before it, or register a custom layer through the entry point '
        "group 'bmcompiler.caffe_layers'"
    )


@pytest.mark.parametrize(
    ("weights", "error", "message"),
    [
        (None, FileFormatError, r"has no weights; expected \[2, 3, 3, 3\], \[2\]. Remedy: give the .caffemodel"),
        ({"m": [(1,)]}, FileFormatError, r"has no weights in net.caffemodel; expected \[2, 3, 3, 3\], \[2\]"),
        ({"l": [(2, 3, 3, 3)]}, ShapeError, r"has 1 weight blobs in net.caffemodel, expected \[2, 3, 3, 3\], \[2\]"),
        (
            {"l": [(2, 4, 3, 3), (2,)]},
            ShapeError,
            r"weight blob 0 has shape \[2, 4, 3, 3\] in net.caffemodel, expected \[2, 3, 3, 3\]",
        ),
        ({"l": [(2, 3, 3, 3), (3,)]}, ShapeError, r"weight blob 1 has shape \[3\] in net.caffemodel, expected \[2\]"),
    ],
)
def test_weights_that_do_not_fit(
    weights: dict[str, list[tuple[int, ...]]] | None, error: type[BMError], message: str, tmp_path: Path
) -> None:
    arrays = weights and {name: [np.zeros(s, np.float32) for s in shapes] for name, shapes in weights.items()}
    with pytest.raises(error, match=r"net.prototxt: layer 'l' \(Convolution\): " + message):
        load(tmp_path, CONV, arrays)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (RELU + layer("ReLU", bottom="xx"), r"'l' \(ReLU\): bottom 'xx' is written by no layer .did you mean 'x'"),
        (RELU + layer("ReLU", bottom="out"), "bottom 'out' is written only by itself"),
        (
            RELU + layer("Eltwise", bottom="x z", top="y") + layer("ReLU", name="z", bottom="y", top="z"),
            "bottom 'z' is written only by the later layer 'z': the layers form a cycle or are out of order",
        ),
        (RELU + layer("ReLU", name="b", top="x"), "writes blob 'x', which layer 'a' writes already"),
        (RELU + layer("ReLU", name="b", bottom="x", top="y y"), "two tops of one name"),
        (RELU + layer("ReLU", bottom="x", top="y z"), r"layer 'l' \(ReLU\): has 2 tops, its type makes 1"),
        (RELU + layer("ReLU", bottom=""), r"takes 1 bottoms, has 0"),
        (RELU + 'layer { name: "b" bottom: "x" top: "y" }', "layer 'b': has no .known. type"),
        (
            RELU + layer("Accuracy", name="acc", bottom="x", top="acc") + layer("ReLU", bottom="acc"),
            "bottom 'acc' is made by 'acc' .Accuracy., which only training has",
        ),
        (header((1, 2)), "the net has no output"),
        ("", "is empty"),
        ("name: 'x'", "holds no layer"),
        (header((2**31, 2)) + layer("ReLU"), r"line 1|larger than"),
        (header((2**31 - 1, 2**31 - 1)) + layer("ReLU"), "larger than 2147483647 elements"),
        (header((2**16, 2)) + layer("Tile", "tile_param { tiles: 2000000000 }"), "cannot repeat"),
        (
            layer("DummyData", 'dummy_data_param { data_filler { type: "constant" } shape { dim: 99999 dim: 99999 } }',
                  bottom="", top="d") + layer("ReLU", name="r", bottom="d"),
            "more than 16777216 elements",
        ),
        ('layers { name: "a" type: RELU }' + RELU, "mixes `layers` .* and `layer`"),
        ('input: "a" input: "b" input_dim: 1\n' + RELU, "2 inputs need 8 input_dim values, found 1"),
    ],
)  # fmt: skip
def test_nets_that_cannot_be(text: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(BMError, match=message) as raised:
        load(tmp_path, text)
    assert str(raised.value).startswith(str(tmp_path / "net.prototxt"))


def test_two_layers_with_weights_and_one_name(tmp_path: Path) -> None:
    params = "inner_product_param { num_output: 2 bias_term: false }"
    text = header((1, 2)) + layer("InnerProduct", params, top="x") + layer("InnerProduct", params, bottom="x")
    with pytest.raises(FileFormatError, match=r"layer 'l' \(InnerProduct\): two layers with weights have this name"):
        load(tmp_path, text, {"l": [random((2, 2))]})


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("layer { name: 3 }", "'name' takes a quoted string, found '3'"),
        ("layer { name ", "expected ':' after 'name', found the end of the file"),
        ("layer { pooling_param { pool: MEDIAN } }", "'pool' takes one of MAX, AVE, STOCHASTIC; found 'MEDIAN'"),
        ("layer { pooling_param { kernel_size: -1 } }", "-1 is out of range for 'kernel_size'"),
        ("layer { pooling_param { kernel_size: 1.5 } }", "'kernel_size' takes an integer, found '1.5'"),
        ("layer { pooling_param { kernel_size: 99999999999 } }", "is out of range"),
        ("layer { pooling_param { global_pooling: 2 } }", "takes true or false, found '2'"),
        ("layer { pooling_param: 3 }", "'pooling_param' takes a message in braces, found '3'"),
        ("layer { name: 'a' name: 'b' }", "'name' is given twice"),
        ("layer { name: 'a'", "the '{' opened in line 3 is never closed"),
        ("} layer", "expected a field name, found '}'"),
        ("layer { @ }", "unexpected character '@'"),
        ("layer { name: 'a }", "unexpected character"),
        ("thing { a { b: [1, } }", "expected a value, found '}'"),
        ("thing " * 3, "expected ':' or '{', found 'thing'"),
        ("layer { " + "a { " * 100, "nested more than 32 deep"),
    ],
)
def test_malformed_text_names_the_line(line: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(FileFormatError) as raised:
        load(tmp_path, f"# a\n# b\n{line}\n")
    at = 4 if "end of the file" in message or "never closed" in message else 3
    assert str(raised.value) == f"{tmp_path}/net.prototxt: line {at}: {raised.value.reason.split(': ', 1)[1]}"
    assert message in str(raised.value)


def test_unreadable_files(tmp_path: Path) -> None:
    text, model = save(tmp_path, CONV, {"l": [random((2, 3, 3, 3)), random((2,))]})
    assert model is not None
    whole = model.read_bytes()
    model.write_bytes(whole[:-7])
    with pytest.raises(FileFormatError, match=r"net.caffemodel: is not a Caffe model.*complete"):
        import_caffe(text, model)
    with pytest.raises(FileFormatError, match=r"missing.caffemodel: cannot be read: No such file"):
        import_caffe(text, tmp_path / "missing.caffemodel")
    with pytest.raises(FileFormatError, match="not a regular file"):
        import_caffe(tmp_path, model)
    (tmp_path / "latin.prototxt").write_bytes(b"name: 'a'\nlayer { name: '\xe9\xe8' }")
    with pytest.raises(FileFormatError, match=r"latin.prototxt: line 2: not UTF-8"):
        import_caffe(tmp_path / "latin.prototxt")


def test_blobs_whose_values_do_not_fit_their_shape(tmp_path: Path) -> None:
    net = caffemodel({"l": [random((2, 3, 3, 3)), random((2,))]})
    net.layer[0].blobs[0].shape.dim[0] = 2**40
    (tmp_path / "x.caffemodel").write_bytes(net.SerializeToString())
    with pytest.raises(FileFormatError, match=r"x.caffemodel: layer 'l': blob 0 has the impossible shape"):
        import_caffe(save(tmp_path, CONV)[0], tmp_path / "x.caffemodel")
    net.layer[0].blobs[0].shape.dim[0] = 3
    (tmp_path / "x.caffemodel").write_bytes(net.SerializeToString())
    with pytest.raises(FileFormatError, match=r"blob 0 holds 54 values, its shape \[3, 3, 3, 3\] needs 81"):
        import_caffe(save(tmp_path, CONV)[0], tmp_path / "x.caffemodel")


# -- mutations --------------------------------------------------------------------------------------------------------
def mutated(data: bytes, seed: int) -> bytes:
    """A few seeded byte changes, deletions, copies, or a cut."""
    rng = stdlib_random.Random(seed)
    out = bytearray(data)
    for _ in range(rng.randint(1, 4)):
        at, size = rng.randrange(len(out)), rng.randint(1, 12)
        match rng.randrange(5):
            case 0:
                out[at] = rng.randrange(256)
            case 1:
                del out[at : at + size]
            case 2:
                out[at:at] = out[(other := rng.randrange(len(out))) : other + size]
            case 3:
                out[at] ^= 1 << rng.randrange(8)
            case _:
                out[at : at + size] = rng.choice([b"-1", b"999999999", b"0", b"{", b"}", b"\xff" * 5, b"\0" * size])
    return bytes(out[: rng.randrange(1, len(out))] if rng.random() < 0.1 else out) or b"x"


def survives(*files: Path) -> bool:
    """True for success, False for a reported one-line error; anything else is raised."""
    try:
        import_caffe(*files)
    except BMError as error:
        assert str(error) and "\n" not in str(error)
        return False
    return True


def test_mutated_prototxts_succeed_or_report(tmp_path: Path) -> None:
    text = (ROOT / "models/lenet/deploy.prototxt").read_bytes() + layer(
        "Reshape", "reshape_param { shape { dim: 0 dim: -1 } axis: 0 }", name="r", bottom="prob", top="r"
    ).encode()
    outcomes = set()
    for seed in range(300):
        (tmp_path / "net.prototxt").write_bytes(mutated(text, seed))
        outcomes.add(survives(tmp_path / "net.prototxt", ROOT / "models/lenet/lenet.caffemodel"))
    assert outcomes == {True, False}


CONV_OF_SSD = "convolution_param { num_output: 8 kernel_size: 1 }"
SSD = (
    header((1, 4, 6, 6))
    + layer("Normalize", "norm_param { across_spatial: false channel_shared: true }", "n", top="n")
    + layer("MVN", "mvn_param { across_channels: true }", "m", "n", "m")
    + layer("Convolution", CONV_OF_SSD, "c", "m", "c")
    + layer("Permute", "permute_param { order: 0 order: 2 order: 3 order: 1 }", "p", "c", "p")
    + layer("Flatten", name="f", bottom="p", top="f")
    + layer("PriorBox", "prior_box_param { min_size: 3 max_size: 5 variance: 0.1 step: 2 }", "b", "c data", "b")
    + layer("DetectionOutput", "detection_output_param { num_classes: 4 nms_param { top_k: 9 eta: 0.9 } keep_top_k: 5 "
            "code_type: CENTER_SIZE confidence_threshold: 0.01 }", "d", "f f b", "d")
)  # fmt: skip
REGIONS = (
    header((1, 8, 6, 6), "s") + header((1, 16, 6, 6), "l") + header((1, 3), "i")
    + layer("Proposal", "proposal_param { ratio: 1 ratio: 2 scale: 4 scale: 8 post_nms_topn: 9 feat_stride: 16 }",
            "p", "s l i", "p q")
    + layer("ROIPooling", "roi_pooling_param { pooled_h: 2 pooled_w: 3 spatial_scale: 0.0625 }", "r", "s p", "r")
    + layer("PSROIPooling", "psroi_pooling_param { group_size: 2 output_dim: 2 spatial_scale: 0.06 }", "t", "s p", "t")
)  # fmt: skip
MOVES = (
    header((2, 8, 6, 6))
    + layer("Pooling", "pooling_param { kernel_size: 2 stride: 2 pad: 1 }", "a", "data", "a mask")
    + layer("Upsample", "upsample_param { scale: 2 pad_out_h: true upsample_w: 9 }", "u", "a mask", "u")
    + layer("Interp", "interp_param { zoom_factor: 2 shrink_factor: 3 pad_beg: -1 }", "i", "u", "i")
    + layer("SPP", "spp_param { pyramid_height: 2 }", "s", "i", "s")
    + layer("ArgMax", "argmax_param { top_k: 3 axis: 1 out_max_val: true }", "m", "s", "m")
    + layer("Reorg", "reorg_param { stride: 2 }", "o", "data", "o")
    + layer("Im2col", "convolution_param { kernel_size: 2 stride: 2 }", "c", "o", "c")
    + layer("Crop", "crop_param { axis: 2 offset: 1 }", "k", "data o", "k")
)


@pytest.mark.parametrize("text", [SSD, REGIONS, MOVES], ids=["ssd", "regions", "moves"])
def test_mutated_settings_of_detectors_succeed_or_report(text: str, tmp_path: Path) -> None:
    weights = {"n": [random((1,))], "c": [random((8, 4, 1, 1)), random((8,))]}
    path, model = save(tmp_path, text, weights)
    assert model is not None and survives(path, model)
    outcomes = set()
    for seed in range(250):
        path.write_bytes(mutated(text.encode(), seed))
        outcomes.add(survives(path, model))
    assert outcomes == {True, False}


def test_mutated_caffemodels_succeed_or_report(tmp_path: Path) -> None:
    weights = {"l": [random((2, 3, 3, 3)), random((2,))], "bn": [random((2,), i) for i in range(3)]}
    text, model = save(tmp_path, CONV + layer("BatchNorm", name="bn", bottom="out", top="y"), weights)
    assert model is not None
    net = caffemodel(weights)
    net.MergeFrom(read_net(text).net)
    whole, alone = model.read_bytes(), net.SerializeToString()
    for seed in range(300):
        model.write_bytes(mutated(whole, seed))
        survives(text, model)
        model.write_bytes(mutated(alone, seed))
        survives(model)
