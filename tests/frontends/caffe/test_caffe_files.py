"""File forms: real models, argument order, old layer messages, blob encodings, phases, inputs, names."""

from __future__ import annotations

import logging
from pathlib import Path

import numpy as np
import pytest
from caffe_nets import caffemodel, header, layer, load, random, run, save

from bmcompiler.errors import BMError, ShapeError, UnsupportedError, UsageError
from bmcompiler.frontends.caffe import FRONTEND, caffe_pb2, import_caffe
from bmcompiler.interpreter import run_module

ROOT = Path(__file__).parents[3]
LENET = ROOT / "models" / "lenet"
CONV = "convolution_param { num_output: 2 kernel_size: 3 }"


def weights_of_conv() -> dict[str, list[np.ndarray]]:
    return {"l": [random((2, 3, 3, 3), 1), random((2,), 2)]}


# -- real models ------------------------------------------------------------------------------------------------------
def test_lenet_classifies_as_opencv_does() -> None:
    import cv2

    digits = np.load(ROOT / "models" / "digits.npz")
    x = digits["test"].astype(np.float32) / 255
    files = LENET / "deploy.prototxt", LENET / "lenet.caffemodel"
    module = import_caffe(*files, shapes=[x.shape])
    prob = run_module(module, {"data": x})["prob"]
    assert (prob.argmax(axis=1) == digits["labels"]).sum() == 482
    net = cv2.dnn.readNetFromCaffe(*map(str, files))
    net.setInput(x)
    np.testing.assert_allclose(prob, net.forward(), atol=1e-4)


def test_files_come_in_any_order_and_through_the_entry_point_object() -> None:
    files = LENET / "deploy.prototxt", LENET / "lenet.caffemodel"
    assert str(FRONTEND.load(*files)) == str(FRONTEND.load(*reversed(files)))
    assert FRONTEND.load(*files).main.name == "LeNet"
    assert FRONTEND.load(*files, name="mine").main.name == "mine"
    assert {".prototxt", ".caffemodel"} <= set(FRONTEND.suffixes)


def test_ssd_face_detector_heads_equal_opencv() -> None:
    folder = ROOT / "models" / "third_party"
    files = folder / "res10_ssd_face.prototxt", folder / "res10_ssd_face.caffemodel"
    if not all(file.exists() for file in files):
        pytest.skip("res10_ssd_face is not there: run python models/fetch.py")
    import cv2

    sources = ("conv4_3_norm", "fc7", "conv6_2", "conv7_2", "conv8_2", "conv9_2")
    names = [f"{source}_mbox_{what}" for source in sources for what in ("loc", "conf")]
    x = random((1, 3, 300, 300), low=-120, high=130)
    ours = run(import_caffe(*files, outputs=names), {"data": x})
    net = cv2.dnn.readNetFromCaffe(*map(str, files))
    net.setInput(x)
    for mine, reference in zip(ours, net.forward(names), strict=True):
        np.testing.assert_allclose(mine, reference, atol=5e-5)


# -- older messages ---------------------------------------------------------------------------------------------------
V1 = """
name: "old" input: "data" input_dim: 1 input_dim: 3 input_dim: 6 input_dim: 6
layers { name: "l" type: CONVOLUTION bottom: "data" top: "c" blobs_lr: 1 weight_decay: 0
         convolution_param { num_output: 2 kernel_size: 3 } }
layers { name: "r" type: RELU bottom: "c" top: "c" }
layers { name: "p" type: POOLING bottom: "c" top: "p" pooling_param { pool: AVE kernel_size: 2 stride: 2 } }
layers { name: "d" type: DROPOUT bottom: "p" top: "p" dropout_param { dropout_ratio: 0.5 } }
layers { name: "s" type: SOFTMAX bottom: "p" top: "s" }
"""
V0 = """
input: "data" input_dim: 1 input_dim: 3 input_dim: 6 input_dim: 6
layers { layer { name: "pad" type: "padding" pad: 0 } bottom: "data" top: "padded" }
layers { layer { name: "l" type: "conv" num_output: 2 kernelsize: 3 } bottom: "padded" top: "c" }
layers { layer { name: "r" type: "relu" } bottom: "c" top: "c" }
layers { layer { name: "p" type: "pool" pool: AVE kernelsize: 2 stride: 2 } bottom: "c" top: "p" }
layers { layer { name: "s" type: "softmax" } bottom: "p" top: "s" }
"""
V2 = (
    header((1, 3, 6, 6))
    + layer("Convolution", CONV, top="c")
    + layer("ReLU", name="r", bottom="c", top="c")
    + layer("Pooling", "pooling_param { pool: AVE kernel_size: 2 stride: 2 }", name="p", bottom="c", top="p")
    + layer("Softmax", name="s", bottom="p", top="s")
)


@pytest.mark.parametrize("old", [V1, V0])
def test_older_layer_messages_mean_the_same(old: str, tmp_path: Path) -> None:
    x, weights = random((1, 3, 6, 6)), weights_of_conv()
    (expected,) = run(load(tmp_path, V2, weights), {"data": x})
    (found,) = run(load(tmp_path, old, weights), {"data": x})
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("version", [0, 1])
def test_weights_of_older_caffemodels(version: int, tmp_path: Path) -> None:
    net = caffe_pb2.NetParameter()
    outer = net.layers.add()
    holder = outer if version else outer.layer
    holder.name = "l"
    w, b = weights_of_conv()["l"]
    holder.blobs.add(num=2, channels=3, height=3, width=3, data=w.ravel())
    holder.blobs.add(num=1, channels=1, height=1, width=2, data=b)
    (tmp_path / "old.caffemodel").write_bytes(net.SerializeToString())
    files = save(tmp_path, V2)
    x = random((1, 3, 6, 6))
    (found,) = run(import_caffe(files[0], tmp_path / "old.caffemodel"), {"data": x})
    (expected,) = run(load(tmp_path, V2, weights_of_conv()), {"data": x})
    np.testing.assert_array_equal(found, expected)


def _blob(how: str, array: np.ndarray) -> caffe_pb2.BlobProto:
    blob = caffe_pb2.BlobProto(shape={"dim": array.shape})
    if how == "double_data":
        blob.double_data.extend(array.ravel())
    elif how.startswith("raw"):
        kind, dtype = {"raw32": (caffe_pb2.FLOAT, "<f4"), "raw64": (caffe_pb2.DOUBLE, "<f8"), "raw16": (2, "<f2")}[how]
        blob.raw_data_type, blob.raw_data = kind, array.astype(dtype).tobytes()
    return blob


def _unpacked(array: np.ndarray) -> bytes:
    """A blob whose floats are written one field each (tag 5, 32 bits)."""
    shape = caffe_pb2.BlobProto(shape={"dim": array.shape}).SerializeToString()
    return shape + b"".join(b"\x2d" + value.tobytes() for value in array.astype("<f4").ravel())


@pytest.mark.parametrize("how", ["double_data", "raw32", "raw64", "raw16", "unpacked"])
def test_blob_encodings(how: str, tmp_path: Path) -> None:
    weights = {"l": [np.round(a * 64) / 64 for a in weights_of_conv()["l"]]}  # exact in float16
    new = caffe_pb2.LayerParameter(name="l", type="Convolution")
    for array in weights["l"]:
        new.blobs.add().MergeFromString(
            _unpacked(array) if how == "unpacked" else _blob(how, array).SerializeToString()
        )
    data = new.SerializeToString()
    if how == "unpacked":  # our own serializer would pack them again
        blobs = [b"\x3a" + _varint(len(b)) + b for b in map(_unpacked, weights["l"])]
        data = caffe_pb2.LayerParameter(name="l", type="Convolution").SerializeToString() + b"".join(blobs)
    (tmp_path / "x.caffemodel").write_bytes(b"\xa2\x06" + _varint(len(data)) + data)
    x = random((1, 3, 6, 6))
    (found,) = run(import_caffe(save(tmp_path, V2)[0], tmp_path / "x.caffemodel"), {"data": x})
    (expected,) = run(load(tmp_path, V2, weights), {"data": x})
    np.testing.assert_array_equal(found, expected)


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes([*out, value])


def test_a_caffemodel_alone_holds_structure_and_inserted_splits(tmp_path: Path) -> None:
    net = caffemodel({})
    del net.layer[:]
    data = net.layer.add(name="data", type="Input", top=["data"])
    data.input_param.shape.add(dim=[1, 3, 6, 6])
    conv = net.layer.add(name="l", type="Convolution", bottom=["data"], top=["c"])
    conv.convolution_param.num_output = 2
    conv.convolution_param.kernel_size.append(3)
    for array in weights_of_conv()["l"]:
        conv.blobs.add(shape={"dim": array.shape}, data=array.ravel())
    net.layer.add(name="c_l_0_split", type="Split", bottom=["c"], top=["c_0", "c_1"])
    net.layer.add(name="sum", type="Eltwise", bottom=["c_0", "c_1"], top=["sum"])
    (tmp_path / "alone.caffemodel").write_bytes(net.SerializeToString())
    module = import_caffe(tmp_path / "alone.caffemodel")
    assert module.main.output_names == ["sum"]
    assert [op.short_name for op in module.main.ops] == ["weight", "weight", "conv", "add", "return"]


def test_a_net_as_it_was_trained_asks_for_the_prototxt(tmp_path: Path) -> None:
    net = caffemodel(weights_of_conv())
    net.layer[0].type, net.layer[0].top[:], net.layer[0].bottom[:] = "Convolution", ["c"], ["data"]
    (tmp_path / "trained.caffemodel").write_bytes(net.SerializeToString())
    with pytest.raises(BMError, match=r"Remedy: give the \.prototxt of the net beside it"):
        import_caffe(tmp_path / "trained.caffemodel")


# -- phases, training layers, inputs ----------------------------------------------------------------------------------
TRAINING = """
name: "train_test"
layer { name: "d" type: "Data" top: "data" top: "label" include { phase: TRAIN } data_param { batch_size: 64 } }
layer { name: "d" type: "Data" top: "data" top: "label" include { phase: TEST }
        transform_param { crop_size: 6 mean_value: 1 mean_value: 2 mean_value: 3 } data_param { batch_size: 100 } }
layer { name: "l" type: "Convolution" bottom: "data" top: "c" convolution_param { num_output: 2 kernel_size: 3 } }
layer { name: "drop" type: "Dropout" bottom: "c" top: "c" exclude { phase: TEST } }
layer { name: "other" type: "NoSuchThing" bottom: "c" top: "o" include { stage: "deploy2" } }
layer { name: "acc" type: "Accuracy" bottom: "c" bottom: "label" top: "acc" include { phase: TEST } }
layer { name: "loss" type: "SoftmaxWithLoss" bottom: "c" bottom: "label" top: "loss" }
"""


def test_a_training_file_ends_at_what_the_loss_reads(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO):
        main = load(tmp_path, TRAINING, weights_of_conv()).main
    assert (main.input_names, main.output_names) == (["data"], ["c"])
    assert main.arguments[0].shape == (1, 3, 6, 6)
    assert "layer 'loss' (SoftmaxWithLoss) is for training only and was dropped; its input 'c' stays" in caplog.text


def test_data_layers_need_a_shape_from_somewhere(tmp_path: Path) -> None:
    text = TRAINING.replace("crop_size: 6", "")
    with pytest.raises(UnsupportedError, match=r"layer 'd' \(Data\): input 'data' has no fixed shape.*with shapes"):
        load(tmp_path, text, weights_of_conv())
    assert load(tmp_path, text, weights_of_conv(), shapes=[(4, 3, 8, 8)]).main.arguments[0].shape == (4, 3, 8, 8)


def test_stages_and_levels(tmp_path: Path) -> None:
    text = 'state { level: 2 stage: "a" }\n' + header((1, 2))
    rules = ["min_level: 3", "max_level: 1", 'stage: "b"', 'not_stage: "a"', 'min_level: 2 stage: "a" not_stage: "b"']
    for i, rule in enumerate(rules):
        text += layer("ReLU", f"include {{ {rule} }}", name=f"l{i}", top=f"out{i}")
    assert load(tmp_path, text).main.output_names == ["out4"]


def test_shapes_by_order_and_by_name(tmp_path: Path) -> None:
    text = header((1, 2, 4, 4), "a") + header((1, 2, 4, 4), "b") + layer("Eltwise", bottom="a b")
    new = (3, 2, 5, 5)
    for shapes in ([new, new], {"a": new, "b": new}):
        assert load(tmp_path, text, shapes=shapes).main.returned[0].shape == new
    with pytest.raises(UsageError, match="no input called 'c'; inputs: a, b"):
        load(tmp_path, text, shapes={"c": new})
    with pytest.raises(UsageError, match="got 3 shapes for 2 inputs"):
        load(tmp_path, text, shapes=[new, new, new])
    with pytest.raises(ShapeError, match="4 axes"):
        load(tmp_path, text, shapes=[(1, 2)])
    with pytest.raises(ShapeError, match=r"layer 'l' \(Eltwise\): bottoms must have one shape"):
        load(tmp_path, text, shapes=[new])


def test_a_file_without_input_shape_asks_for_one(tmp_path: Path) -> None:
    for text in (
        'input: "data"\n',
        header((0, 3, 6, 6)),
        header((-1, 3, 6, 6)),
        'layer { name: "i" type: "Input" top: "data" }',
    ):
        text += layer("ReLU")
        with pytest.raises(UnsupportedError, match=r"input 'data' has no fixed shape.*with shapes"):
            load(tmp_path, text)
        assert load(tmp_path, text, shapes=[(1, 3, 2, 2)]).main.arguments[0].shape == (1, 3, 2, 2)


# -- outputs and names ------------------------------------------------------------------------------------------------
def test_outputs_cut_the_net_and_unneeded_inputs_and_weights_go(tmp_path: Path) -> None:
    text = header((1, 3, 6, 6)) + header((1, 3), "info") + layer("Convolution", CONV, top="c")
    text += layer("NoSuchThing", name="n", bottom="c info", top="n")
    weights = weights_of_conv()
    module = load(tmp_path, text, weights, outputs=["c"])
    assert (module.main.input_names, module.main.output_names) == (["data"], ["c"])
    assert sorted(module.weights) == ["l.bias", "l.weight"]
    with pytest.raises(UnsupportedError, match=r"layer 'n' \(NoSuchThing\).*pass outputs=..c.. to end the net"):
        load(tmp_path, text, weights)
    with pytest.raises(UsageError, match=r"no blob or layer called 'cc'.*such as c"):
        load(tmp_path, text, weights, outputs=["cc"])


def test_tensor_names_follow_in_place_layers(tmp_path: Path) -> None:
    text = V2 + layer("Slice", name="cut", bottom="s", top="s0 s1")
    module = load(tmp_path, text, weights_of_conv())
    named = {op.short_name: op.attributes.get("source.tensor") for op in module.main.ops}
    assert named["conv"] is None  # the in-place ReLU writes the blob's last value
    assert (named["relu"], named["avg_pool"], named["softmax"], named["split"]) == ("c", "p", "s", ("s0", "s1"))
    assert {op.location for op in module.main.ops if op.name.startswith("tensorop")} == {
        ("l",), ("r",), ("p",), ("s",), ("cut",),
    }  # fmt: skip


def test_unknown_settings_are_reported_and_ignored(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    text = header((1, 2)) + layer("ReLU", "relu_param { fancy: 1 } extra { a: [1, 2] b: X }")
    assert load(tmp_path, text).main.output_names == ["out"]
    assert "layer 'l': unknown settings are ignored: relu_param.fancy, extra" in caplog.text


def test_text_forms(tmp_path: Path) -> None:
    text = (
        '# comment\nname: \'sing\' "le"; input: "data"\ninput_shape: < dim: [1, 0x2, 02], dim: 3 >\n'
        'layer: [{ name: "l\\x41" type: "Power" bottom: "data" top: "out" power_param { scale: -1.5e0f, shift: .5 } }]'
    )
    module = load(tmp_path, text)
    assert (module.main.name, module.main.arguments[0].shape) == ("single", (1, 2, 2, 3))
    assert module.main.ops[-2].location == ("lA",)
    (y,) = run(module, {"data": np.ones((1, 2, 2, 3), np.float32)})
    assert (y == -1).all()


def test_two_prototxts_are_a_usage_error(tmp_path: Path) -> None:
    path, _ = save(tmp_path, V2)
    (tmp_path / "other.prototxt").write_text(V2)
    with pytest.raises(UsageError, match=r"one .prototxt and one .caffemodel"):
        import_caffe(path, tmp_path / "other.prototxt")
