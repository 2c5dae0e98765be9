"""bmnet-doctor: models beside boards, and installations."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import onnx
import pytest
from cli_files import command, onnx_model

import bmcompiler
from bmcompiler.bmodel import load, save
from bmcompiler.bmodel.bm168x import Bm168xModel
from bmcompiler.doctor.board import read_board
from bmcompiler.doctor.installation import misses
from bmcompiler.doctor.model import device_bytes
from bmcompiler.errors import FileFormatError
from bmcompiler.options import Preprocessing


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with CHIP.bmodel for each chip."""
    folder = tmp_path_factory.mktemp("models")
    onnx.save(onnx_model(), folder / "net.onnx")
    for chip in ("bm1684", "bm1684x", "dv700"):
        bmcompiler.compile(folder / "net.onnx", target=chip, output=folder / f"{chip}.bmodel")
    return folder


def asked(capsys: pytest.CaptureFixture[str], *words: object) -> tuple[int, dict[str, Any]]:
    """Exit status, and findings of the model by what they are about."""
    capsys.readouterr()
    status = command("doctor", *words, "--json")
    found = json.loads(capsys.readouterr().out)
    return status, {each["what"]: each for each in next(iter(found.values()))}


def board(folder: Path, **facts: object) -> Path:
    path = folder / "board.json"
    path.write_text(json.dumps(facts), "utf-8")
    return path


def test_a_model_fits_its_board(models: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    facts = board(tmp_path, chip="bm1684x", memory="4 GB", runtime="0.4.8")
    status, found = asked(capsys, models / "bm1684x.bmodel", "--board", facts)
    assert status == 0
    assert {found[what]["state"] for what in ("chip", "memory", "runtime", "precision", "firmware")} == {"ok"}
    assert found["precision"]["text"] == "f32"
    assert "libsophon" in found["runtime"]["source"]


def test_chip_memory_and_addresses_that_do_not_fit(
    models: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    status, found = asked(capsys, models / "bm1684.bmodel", "--board", board(tmp_path, chip="BM1684X", memory=1000))
    assert status == 1
    assert (found["chip"]["state"], found["memory"]["state"]) == ("wrong", "wrong")
    model = load(models / "bm1684x.bmodel")
    assert isinstance(model, Bm168xModel)
    save(replace(model, nets=[replace(net, address_mode=2) for net in model.nets]), tmp_path / "tagged.bmodel")
    status, found = asked(capsys, tmp_path / "tagged.bmodel", "--board", board(tmp_path, runtime="0.4.8"))
    assert (status, found["runtime"]["text"]) == (1, "libsophon 0.4.8 has no addr_mode io_tag")


def test_of_a_later_runtime_the_chips_are_known(
    models: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    facts, tagged = board(tmp_path, runtime="0.5.2"), tmp_path / "tagged.bmodel"
    status, found = asked(capsys, models / "bm1684x.bmodel", "--board", facts)
    assert (status, found["runtime"]["state"]) == (0, "ok") and "bmrt_arch_info.cpp" in found["runtime"]["source"]
    model = load(models / "bm1684x.bmodel")
    assert isinstance(model, Bm168xModel)
    save(replace(model, nets=[replace(net, address_mode=2) for net in model.nets]), tagged)
    status, found = asked(capsys, tagged, "--board", facts)
    assert (status, found["runtime"]["state"]) == (0, "unknown")


def test_what_is_not_known_is_said(models: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, runtime in (
        ("bm1684x", "0.4.10"),
        ("bm1684x", "0.4.11"),
        ("bm1684x", "9.9"),
        ("bm1684x", "0.5.3"),
        ("dv700", "1.0"),
    ):
        status, found = asked(capsys, models / f"{name}.bmodel", "--board", board(tmp_path, runtime=runtime))
        assert (status, found["runtime"]["state"], found["chip"]["state"]) == (0, "unknown", "unknown")
    assert command("doctor", models / "dv700.bmodel") == 0
    assert "memory" in capsys.readouterr().out


def test_memory_is_that_of_all_stages(models: Path) -> None:
    model = load(models / "bm1684.bmodel")
    (stage,) = model.stages()
    assert device_bytes(model) == stage.weight_size + stage.instruction_size + stage.neuron_size
    two = bmcompiler.compile(models / "net.onnx", target="bm1684", shapes=[[[1, 2, 6, 6]], [[3, 2, 6, 6]]]).model
    one, other = two.stages()
    weights = sum(map(len, two.weight_sets))
    commands = one.instruction_size + other.instruction_size
    assert device_bytes(two) == weights + commands + max(one.neuron_size, other.neuron_size)


def test_inputs_and_pictures_are_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    x = onnx.helper.make_tensor_value_info("x", 1, [1, 3, 8, 8])
    y = onnx.helper.make_tensor_value_info("y", 1, [1, 3, 8, 8])
    graph = onnx.helper.make_graph([onnx.helper.make_node("Relu", ["x"], ["y"])], "relu", [x], [y])
    told = Preprocessing(mean=5, scale=2, channel_order="bgr")
    bmcompiler.compile(onnx.helper.make_model(graph), target="bm1684", preprocess=told, output=tmp_path / "a.bmodel")
    assert command("doctor", tmp_path / "a.bmodel", "--sources") == 0
    said = capsys.readouterr().out
    assert "input: x, [1, 3, 8, 8], float32" in said and "bgr" in said and "github.com/sophgo/libsophon" in said


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("a.toml", 'chp = "BM1684"', "did you mean chip?"),
        ("a.toml", "chip = 1684", "must be a text"),
        ("a.toml", 'memory = "much"', 'like "4 GB"'),
        ("a.toml", "memory = -1", 'like "4 GB"'),
        ("a.toml", "memory =", "is not TOML"),
        ("a.json", "[", "is not JSON"),
        ("a.json", '{"chip": "BM1684", "chip": "BM1880"}', "'chip' is given twice"),
        ("a.json", "[]", "must be an object"),
    ],
)
def test_facts_that_are_none(tmp_path: Path, name: str, text: str, said: str) -> None:
    (tmp_path / name).write_text(text, "utf-8")
    with pytest.raises(FileFormatError) as error:
        read_board(tmp_path / name)
    assert said in str(error.value) and name in str(error.value)


def test_memory_of_a_board(tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_text('chip = "x"\nmemory = "3.5 GiB"', "utf-8")
    assert read_board(tmp_path / "a.toml").memory == 7 << 29


def test_versions() -> None:
    assert misses("1.23.2", ">=1.16") == misses("4.25.0rc1", "<5,>=4.25") == misses("2.0", "==2.0") == ""
    assert misses("1.9", ">=1.16") == ">=1.16"
    assert misses("5.0", ">=4,<5") == "<5"


def test_a_package_that_is_broken_or_too_old_is_named(tmp_path: Path) -> None:
    """Another numpy and networkx before the installed ones, as a half-finished upgrade leaves them."""
    (tmp_path / "networkx.py").write_text("raise ImportError('libgraph.so.3: cannot open shared object file')")
    (tmp_path / "click-3.0.dist-info").mkdir()
    (tmp_path / "click-3.0.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: click\nVersion: 3.0\n")
    program = (
        f"import sys; sys.path.insert(0, {str(tmp_path)!r})\n"
        "from bmcompiler.doctor.installation import examine_installation\n"
        "print([(each.what, each.text) for each in examine_installation() if each.state == 'wrong'])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert "('networkx'" in done.stdout and "libgraph.so.3" in done.stdout
    assert "3.0, but >=8.1 is needed" in done.stdout
    assert done.stdout.count("('") == 2


def test_a_plugin_that_fails_to_load_is_a_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    from bmcompiler.doctor.installation import examine_installation
    from bmcompiler.plugins import listing

    info = listing.PluginInfo("mine", "passes", "my-package", "1.0", "broken: no module named gone")
    monkeypatch.setattr(listing, "list_plugins", lambda: [info])
    wrong = [each for each in examine_installation() if each.state == "wrong"]
    assert [(each.what, "gone" in each.text) for each in wrong] == [("plugin mine", True)]


def test_help_is_quick() -> None:
    program = "import sys; from bmcompiler.cli import doctor; print(sorted({'numpy', 'onnx'} & sys.modules.keys()))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_a_board_without_a_model(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert command("doctor", "--board", board(tmp_path)) == 2
    assert "none is given" in capsys.readouterr().err
