"""The current BM1880 container: what is written is read back, and damage is named."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from bmcompiler.bmodel import TensorInfo, digest, load, save
from bmcompiler.bmodel import bm1880_pb2 as pb
from bmcompiler.bmodel.bm1880 import Bm1880Model, Command, Library
from bmcompiler.errors import FileFormatError, UnsupportedError, UsageError


def write_message(path: Path, message: pb.Model, blob: bytes = b"") -> Path:
    text = message.SerializePartialToString()
    path.write_bytes(b"\xdd\xaa\x55\xff" + len(text).to_bytes(4, "little") + text + blob)
    return path


def small_message() -> pb.Model:
    message = pb.Model(net_name="n", chip=1880, fmt=4)
    command = message.command.add(cmdbuf=b"1234", neuron_size=12)
    command.input.add().shape.dim[:] = [1, 1, 2, 4]
    command.output.add(name="y", offset=8).shape.dim[:] = [1, 4, 1, 1]
    return message


def test_a_saved_model_loads_equal(model: Bm1880Model, tmp_path: Path) -> None:
    model.libraries.append(Library("relu7", x86_64=b"elf", armv8=b"elf8"))
    model.producer = "bmcompiler test"
    save(model, tmp_path / "m.bmodel")
    back = load(tmp_path / "m.bmodel")
    assert isinstance(back, Bm1880Model)
    assert back == model
    assert back.commands[0].inputs[0].name == "data"
    assert [stage.weight_size for stage in back.stages()] == [64, 32]


def test_equal_models_give_equal_bytes_and_saving_again_changes_nothing(model: Bm1880Model, tmp_path: Path) -> None:
    for name in "ab":
        save(model, tmp_path / name)
    save(load(tmp_path / "a"), tmp_path / "c")
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes() == (tmp_path / "c").read_bytes()


def test_layout_is_the_vendors(model: Bm1880Model, tmp_path: Path) -> None:
    save(model, tmp_path / "m")
    data = (tmp_path / "m").read_bytes()
    length = int.from_bytes(data[4:8], "little")
    message = pb.Model.FromString(data[8 : 8 + length])
    assert data[:4].hex() == "ddaa55ff"
    assert [(w.weight_offset, w.weight_length) for w in message.weight_info] == [(0, 64), (64, 32)]
    assert len(data) == 8 + length + 96
    assert (message.chip, message.fmt) == (1880, 4)


def test_saving_over_the_loaded_file_keeps_the_weights(model: Bm1880Model, tmp_path: Path) -> None:
    path = tmp_path / "m"
    save(model, path)
    loaded = load(path)
    save(loaded, path)
    assert [bytes(data) for data in loaded.weight_sets] == [bytes(data) for data in load(path).weight_sets] != []


def test_unknown_fields_and_explicit_defaults_survive(tmp_path: Path) -> None:
    message = small_message()
    message.node_num = 1
    message.command[0].weight_index = 0
    unknown = b"\xfa\x3f\x03abc"  # field 1023, length-delimited
    message.MergeFromString(unknown)
    message.command[0].MergeFromString(unknown)
    message.command[0].output[0].MergeFromString(unknown)
    path = write_message(tmp_path / "m", message)
    save(load(path), tmp_path / "copy")
    assert (tmp_path / "copy").read_bytes() == path.read_bytes()


def test_inline_weights_of_older_files_are_read(tmp_path: Path) -> None:
    message = small_message()
    message.weight.append(b"weights!")
    loaded = load(write_message(tmp_path / "m", message))
    assert loaded.weight_sets == (b"weights!",)
    save(loaded, tmp_path / "new")
    assert [bytes(data) for data in load(tmp_path / "new").weight_sets] == [b"weights!"]


def test_files_without_a_length_have_their_weights_in_the_message(tmp_path: Path) -> None:
    message = small_message()
    message.weight.append(b"weights!")
    (tmp_path / "m").write_bytes(b"\xff\xaa\x55\xff" + message.SerializeToString())
    loaded = load(tmp_path / "m")
    assert isinstance(loaded, Bm1880Model)
    assert (loaded.commands[0].cmdbuf, loaded.weight_sets) == (b"1234", (b"weights!",))
    save(loaded, tmp_path / "new")
    assert load(tmp_path / "new") == loaded
    (tmp_path / "cut").write_bytes((tmp_path / "m").read_bytes()[:-3])
    with pytest.raises(FileFormatError, match="cannot be decoded"):
        load(tmp_path / "cut")


def test_weights_are_views_of_the_mapped_file(model: Bm1880Model, tmp_path: Path) -> None:
    save(model, tmp_path / "m")
    loaded = load(tmp_path / "m")
    assert all(isinstance(data, memoryview) and data.readonly for data in loaded.weight_sets)
    assert [digest(data) for data in loaded.weight_sets] == [digest(data) for data in model.weight_sets]


def test_combining_shares_equal_weights_and_keeps_programs(model: Bm1880Model) -> None:
    parts = [replace(model, commands=[one]) for one in model.commands]
    joined = parts[0].combined(parts[1:])
    assert joined.commands == model.commands
    assert joined.weights == model.weights


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"net_name": "other"}, "different names"),
        ({"chip": 1882}, "different chips"),
        ({}, "occurs twice"),
    ],
)
def test_models_that_do_not_fit_are_not_combined(model: Bm1880Model, change: dict[str, object], words: str) -> None:
    with pytest.raises(UnsupportedError, match=words):
        model.combined([replace(model, **change)])  # type: ignore[arg-type]


def test_a_name_for_the_result_allows_different_names(model: Bm1880Model) -> None:
    first, second = (replace(model, net_name=f"n{i}", commands=[one]) for i, one in enumerate(model.commands))
    assert first.combined([second], "both").net_name == "both"


def test_selecting_a_program_that_is_not_there(model: Bm1880Model) -> None:
    assert model.select(1).commands == [model.commands[1]]
    with pytest.raises(UsageError, match="there is no program 2"):
        model.select(2)


def edit_command(**values: object) -> Callable[[Bm1880Model], None]:
    def edit(model: Bm1880Model) -> None:
        model.commands[0] = replace(model.commands[0], **values)  # type: ignore[arg-type]

    return edit


@pytest.mark.parametrize(
    ("edit", "words"),
    [
        (lambda model: model.commands.clear(), "no command buffer"),
        (edit_command(inputs=[]), "no input"),
        (edit_command(outputs=[]), "no output"),
        (edit_command(weight_index=2), "weight set 2"),
        (edit_command(neuron_size=1 << 40), "activation memory"),
        (edit_command(inputs=[TensorInfo("d", (1, 3, 100, 100))]), "input 0 lies outside"),
        (edit_command(inputs=[TensorInfo("d", (1, 3, 0, 8))]), "impossible shape"),
        (edit_command(inputs=[TensorInfo("d", (2**31, 2**31))]), "lies outside"),
        (edit_command(inputs=[TensorInfo("d", ())]), "0 dimensions"),
        (edit_command(outputs=[TensorInfo("d", (1,), threshold=float("nan"))]), "impossible threshold"),
        (edit_command(outputs=[TensorInfo("d", (1,), threshold=-1.0)]), "impossible threshold"),
        (edit_command(outputs=[TensorInfo("d", (1,), offset=-1)]), "lies outside"),
    ],
)
def test_a_model_that_cannot_run_is_not_written(
    model: Bm1880Model, edit: Callable[[Bm1880Model], None], words: str, tmp_path: Path
) -> None:
    edit(model)
    with pytest.raises(FileFormatError, match=words):
        save(model, tmp_path / "m")
    assert list(tmp_path.iterdir()) == []


def message_with(
    *, weight: tuple[int, int] | None = None, dims: list[int] | None = None, without: str | None = None
) -> pb.Model:
    message = small_message()
    if weight is not None:
        message.weight_info.add(weight_offset=weight[0], weight_length=weight[1])
    if dims is not None:
        message.command[0].input[0].shape.dim[:] = dims
    if without is not None:
        message.ClearField(without)
    return message


@pytest.mark.parametrize(
    ("message", "words"),
    [
        (message_with(weight=(0, 5)), "weight set 0 is said to be"),
        (message_with(weight=(2**63, 2**63)), "weight set 0 is said to be"),
        (message_with(dims=[1] * 100_000), "100000 dimensions"),
        (message_with(dims=[2**32 - 1] * 8), "lies outside"),
        (message_with(without="net_name"), "lacks net_name"),
        (message_with(without="command"), "no command buffer"),
    ],
)
def test_numbers_beyond_the_file_are_refused(message: pb.Model, words: str, tmp_path: Path) -> None:
    path = write_message(tmp_path / "m", message, b"abcd")
    with pytest.raises(FileFormatError, match=words) as caught:
        load(path)
    assert str(caught.value).startswith(f"{path}: ")


def test_overlapping_weight_sets_are_refused(tmp_path: Path) -> None:
    message = message_with(weight=(0, 4))
    message.weight_info.add(weight_offset=0, weight_length=4)
    with pytest.raises(FileFormatError, match="overlap"):
        load(write_message(tmp_path / "m", message, b"abcd"))


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "empty"),
        (b"\xdd\xaa\x55\xff", "header"),
        (b"\xdd\xaa\x55\xff\xff\xff\xff\xff", "should be 4294967295 bytes"),
        (b"\xdd\xaa\x55\xff\x04\x00\x00\x00\xff\xff\xff\xff", "cannot be decoded"),
        (b"\x7fELF and so on", "not a model file"),
        (b"\xdd\xaa\x55\xff\x08\x00\x00\x00\x0a\x02\xff\xfe\x10\x00\x20\x00", "net name is not text|cannot be decoded"),
    ],
)
def test_other_files_are_named_for_what_they_are(content: bytes, words: str, tmp_path: Path) -> None:
    path = tmp_path / "m"
    path.write_bytes(content)
    with pytest.raises(FileFormatError, match=words):
        load(path)


def test_a_folder_is_no_model(tmp_path: Path) -> None:
    with pytest.raises(FileFormatError, match="not a regular file"):
        load(tmp_path)


def test_pieces_have_safe_names_whatever_the_net_is_called(model: Bm1880Model) -> None:
    names = [name for name, _ in replace(model, net_name="../../etc/passwd").pieces()]
    assert "net0_stage1.cmdbuf" in names and "weight1.bin" in names
    assert all("/" not in name for name in names)


def test_a_vendor_file_survives_byte_for_byte(vendor_samples: Path, tmp_path: Path) -> None:
    model = load(vendor_samples / "mtcnn_pnet.bmodel")
    assert len(model.stages()) == 11 and len(model.weight_sets) == 1
    save(model, tmp_path / "copy")
    assert (tmp_path / "copy").read_bytes() == (vendor_samples / "mtcnn_pnet.bmodel").read_bytes()


def test_a_command_needs_no_names(tmp_path: Path) -> None:
    one = Command([TensorInfo("", (1, 4))], [TensorInfo("", (1, 4), offset=4)], b"x", 8)
    save(Bm1880Model("n", [one], []), tmp_path / "m")
    assert load(tmp_path / "m").stages()[0].weight_size == 0
