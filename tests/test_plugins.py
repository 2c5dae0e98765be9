"""Installed plugins: loaded when needed, reported when broken, refused when two claim a name; models bring no code."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from plugin_packages import install, on_path

import bmcompiler
from bmcompiler import bmodel
from bmcompiler.cli.common import run
from bmcompiler.cli.compile import cli
from bmcompiler.errors import BMError, UnsupportedError
from bmcompiler.ops import find_op
from bmcompiler.passmanager import find_pass, installed_passes
from bmcompiler.plugins.custom_layers import cpu_function
from bmcompiler.plugins.listing import list_plugins
from bmcompiler.plugins.registry import PluginError, entry_points, failures
from bmcompiler.target import find_target

RELU = 'name: "net"\ninput: "x" input_shape { dim: 1 dim: 8 }\nlayer { name: "r" type: "ReLU" bottom: "x" top: "y" }\n'
TWICE = RELU.replace("ReLU", "Twice")
LAYER = """
from bmcompiler.frontends.caffe import caffe_layer

@caffe_layer("Twice")
def convert(layer):
    return layer.b.add(layer.x, layer.x)
"""
BROKEN = {
    "import": ("import nowhere_to_be_found", "ModuleNotFoundError: No module named 'nowhere_to_be_found'"),
    "syntax": ("def broken(:", "SyntaxError: invalid syntax"),
    "raises": ("raise RuntimeError('no licence')", "RuntimeError: no licence"),
    "exits": ("import sys; sys.exit(3)", "SystemExit: 3"),
}


@pytest.fixture(autouse=True)
def registries() -> Iterator[None]:
    with on_path():
        yield


def net(folder: Path, text: str = RELU) -> Path:
    (folder / "net.prototxt").write_text(text)
    return folder / "net.prototxt"


def compiled(path: Path) -> bmcompiler.Result:
    return bmcompiler.compile(path, target="bm1684")


# -- broken ones -------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("kind", BROKEN)
@pytest.mark.parametrize("group", ["caffe_layers", "onnx_ops", "tensor_ops", "tensor_insts", "passes", "containers"])
def test_a_broken_plugin_is_reported_and_harms_nobody_else(kind: str, group: str, tmp_path: Path) -> None:
    code, cause = BROKEN[kind]
    install(tmp_path, "sad-layers", {group: {"sad": "sad_layers:thing"}}, "2.3", sad_layers=code)
    with on_path(tmp_path):
        result = compiled(net(tmp_path))
        bmodel.save(result.model, tmp_path / "net.bmodel")
        bmodel.load(tmp_path / "net.bmodel")
        (info,) = list_plugins()
        assert (info.name, info.group, info.package, info.version) == ("sad", group, "sad-layers", "2.3")
        assert info.state.startswith(f"broken: cannot be imported: {cause}")
        again = compiled(net(tmp_path))
        (warning,) = [text for text in again.warnings if "sad" in text]
        assert f"bmcompiler.{group}: plugin 'sad' (sad_layers:thing) of sad-layers 2.3" in warning and cause in warning


@pytest.mark.parametrize(
    ("group", "value", "reason"),
    [
        ("targets", "5", "is not a target: it is of type int, no bmcompiler.target.Target"),
        ("passes", "str", "is not a Pass class: it has no 'name'"),
        (
            "frontends",
            "print",
            "is not a frontend: it is of type builtin_function_or_method, no bmcompiler.frontend.Frontend",
        ),
        ("containers", "object()", "is not a Container: it has no 'kind'"),
        ("tensor_insts", "5", "is not a module, a class or a function: it is of type int"),
        ("caffe_layers", "'text'", "is not a module, a class or a function: it is of type str"),
        ("tensor_insts", "dict", "dict is no TensorInst"),
        ("cpu_functions", "5", "is not a function: it has no '__call__'"),
    ],
)
def test_a_wrong_object_is_told_what_its_group_holds(group: str, value: str, reason: str, tmp_path: Path) -> None:
    install(tmp_path, "odd", {group: {"odd": "odd_things:thing"}}, odd_things=f"thing = {value}")
    with on_path(tmp_path):
        (info,) = list_plugins()
        assert reason in info.state
        compiled(net(tmp_path))


def test_who_names_a_broken_plugin_gets_its_error(tmp_path: Path) -> None:
    points = {"targets": {"sad": "sad:T"}, "passes": {"sad-pass": "sad:P"}, "caffe_layers": {"Twice": "sad:L"}}
    install(tmp_path, "sad-chip", points, sad="import nowhere_to_be_found")
    with on_path(tmp_path):
        for need in (
            lambda: find_target("sad"),
            lambda: find_pass("sad-pass"),
            lambda: compiled(net(tmp_path, TWICE)),
        ):
            with pytest.raises(PluginError, match=r"of sad-chip 1.0 cannot be imported: ModuleNotFoundError"):
                need()
        assert find_target("bm1684").name == "bm1684"
        assert "sad-pass" not in [cls.name for cls in installed_passes()]


def test_what_a_broken_plugin_may_have_brought_is_hinted_at(tmp_path: Path) -> None:
    groups = ("caffe_layers", "onnx_ops", "tensor_ops", "tensor_insts")
    install(tmp_path, "sad", {group: {"all": "sad_all"} for group in groups}, sad_all="1/0")
    graph = helper.make_graph([helper.make_node("Odd", ["x"], ["y"], domain="d")], "g", *infos())
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("d", 1)]), tmp_path / "net.onnx")
    hint = r"What is missing may be in a broken plugin: .*'all' \(sad_all\) of sad 1.0 .*ZeroDivisionError"
    with on_path(tmp_path):
        for need in (
            lambda: compiled(net(tmp_path, TWICE)),
            lambda: bmcompiler.load_network(tmp_path / "net.onnx"),
            lambda: find_op("odd"),
        ):
            with pytest.raises(UnsupportedError, match=hint):
                need()


def infos() -> tuple[list[onnx.ValueInfoProto], list[onnx.ValueInfoProto]]:
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, 4]) for name in "xy")
    return [x], [y]


def test_what_a_plugins_converter_raises_is_an_error_with_a_name(tmp_path: Path) -> None:
    code = """
from bmcompiler.frontends.onnx import onnx_op
from bmcompiler.frontends.caffe import caffe_layer

@onnx_op("Odd", domain="d")
def odd(node, b):
    return {}["nothing"]

@caffe_layer("Twice")
def twice(layer):
    return layer.nothing
"""
    install(tmp_path, "odd", {"onnx_ops": {"d.Odd": "odd_op"}, "caffe_layers": {"Twice": "odd_op"}}, odd_op=code)
    graph = helper.make_graph([helper.make_node("Odd", ["x"], ["y"], "node", domain="d")], "g", *infos())
    opsets = [helper.make_opsetid("d", 1), helper.make_opsetid("", 17)]
    onnx.save(helper.make_model(graph, opset_imports=opsets), tmp_path / "net.onnx")
    with on_path(tmp_path):
        with pytest.raises(PluginError, match=r"node 'node'.*|layer 'node'.*converter 'odd_op.odd' failed: KeyError"):
            bmcompiler.load_network(tmp_path / "net.onnx")
        with pytest.raises(PluginError, match=r"'r' \(Twice\): the plugin for layers of type 'Twice' failed: Attribut"):
            bmcompiler.load_network(net(tmp_path, TWICE))


# -- lazy loading ------------------------------------------------------------------------------------------------------
def test_a_plugin_is_imported_when_it_is_needed_only(tmp_path: Path) -> None:
    install(tmp_path, "lazy", {"caffe_layers": {"Twice": "lazy_twice"}}, lazy_twice=LAYER)
    install(tmp_path, "other", {"caffe_layers": {"Other": "lazy_other"}}, lazy_other="1/0")
    with on_path(tmp_path):
        compiled(net(tmp_path))
        assert not {"lazy_twice", "lazy_other"} & sys.modules.keys()
        result = compiled(net(tmp_path, TWICE))
        assert "lazy_twice" in sys.modules and not failures()
        assert [row.kind for row in result.rows] == ["add"]


def test_names_of_a_frontends_entry_points_do_not_matter(tmp_path: Path) -> None:
    install(tmp_path, "layers", {"caffe_layers": {"all": "all_layers"}}, all_layers=LAYER)
    install(tmp_path, "more", {"caffe_layers": {"all": "more_layers"}}, more_layers=LAYER.replace("Twice", "Thrice"))
    with on_path(tmp_path):
        compiled(net(tmp_path, TWICE))
        compiled(net(tmp_path, TWICE.replace("Twice", "Thrice")))
        assert [info.state for info in list_plugins()] == ["ok", "ok"]


# -- clashes -----------------------------------------------------------------------------------------------------------
def test_two_packages_that_claim_a_layer_type_are_both_named(tmp_path: Path) -> None:
    install(tmp_path, "one", {"caffe_layers": {"Twice": "layers_one"}}, layers_one=LAYER)
    install(tmp_path, "two", {"caffe_layers": {"Twice": "layers_two"}}, "0.2", layers_two=LAYER)
    with on_path(tmp_path):
        compiled(net(tmp_path))
        said = r"Caffe layer type 'Twice' is claimed by two packages: (one 1.0 and two 0.2|two 0.2 and one 1.0)"
        with pytest.raises(PluginError, match=said):
            compiled(net(tmp_path, TWICE))
        assert all("clash: Caffe layer type 'Twice'" in info.state for info in list_plugins())


@pytest.mark.parametrize("group", ["targets", "passes", "devices"])
def test_two_packages_with_one_name_are_both_named(group: str, tmp_path: Path) -> None:
    install(tmp_path, "one", {group: {"same": "first:A"}}, first="A = 1")
    install(tmp_path, "two", {group: {"same": "second:B"}}, second="B = 1")
    with on_path(tmp_path):
        with pytest.raises(PluginError, match=r"'same' is declared more than once: by one 1.0 \(first:A\) and two 1.0"):
            entry_points(f"bmcompiler.{group}")["same"]()
        compiled(net(tmp_path))
        assert {info.state.partition(":")[0] for info in list_plugins()} == {"clash"}


def test_functions_and_kernels_clash_too(tmp_path: Path) -> None:
    code = (
        "from bmcompiler.plugins.custom_layers import register_cpu_function\n"
        "register_cpu_function('F', lambda x, i, f: x[0])\n"
    )
    for name in ("one", "two"):
        install(
            tmp_path, name, {"tensor_insts": {"F": f"functions_{name}"}}, **{f"functions_{name}": code + f"# {name}"}
        )
    with on_path(tmp_path), pytest.raises(PluginError, match="the CPU function of custom layer 'F' is claimed by two"):
        cpu_function("F")


def test_what_is_built_in_cannot_be_replaced_but_onnx_converters_can(tmp_path: Path) -> None:
    install(tmp_path, "usurper", {"caffe_layers": {"a": "usurp"}}, usurp=LAYER.replace("Twice", "ReLU"))
    code = "from bmcompiler.frontends.onnx import onnx_op\n@onnx_op('Relu', since=14)\ndef convert(node, b):\n"
    code += "    return b.abs(node.input(0))\n"
    install(tmp_path, "better", {"onnx_ops": {"Relu": "better_relu"}}, better_relu=code)
    graph = helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "g", *infos())
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]), tmp_path / "net.onnx")
    with on_path(tmp_path):
        states = {info.package: info.state for info in list_plugins()}
        assert "'ReLU' is registered twice: by bmcompiler and usurper 1.0" in states["usurper"]
        assert [row.kind for row in compiled(net(tmp_path)).rows] == ["relu"]
        assert "abs" in str(bmcompiler.load_network(tmp_path / "net.onnx"))
    assert "tensorop.relu" in str(bmcompiler.load_network(tmp_path / "net.onnx")), "what is not installed has no say"


# -- the command -------------------------------------------------------------------------------------------------------
def test_the_command_lists_them(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(cli, "bmnet-compile", ["--list-plugins"]) == 0
    assert "no plugins are installed" in capsys.readouterr().out
    install(tmp_path, "good", {"caffe_layers": {"Twice": "good_twice"}}, "1.2.3", good_twice=LAYER)
    install(tmp_path, "sad", {"passes": {"sad": "sad_pass:P"}}, sad_pass="1/0")
    with on_path(tmp_path):
        assert run(cli, "bmnet-compile", ["--list-plugins"]) == 0
        assert run(cli, "bmnet-compile", ["x", "--target", "bm1684", "--pipeline", "help"]) == 0
    lines = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    assert lines[0] == "name group package version state"
    assert "Twice caffe_layers good 1.2.3 ok" in lines
    assert "sad passes sad 1.0 broken: cannot be imported: ZeroDivisionError: division by zero" in lines
    assert [line for line in lines if line.startswith("built in: frontends 3, targets ")]


# -- models bring no code ----------------------------------------------------------------------------------------------
HOSTILE = ("os.system", "builtins:eval", "evil_module", "../evil", "subprocess")


def test_a_model_never_runs_code_that_is_not_installed(tmp_path: Path) -> None:
    """CPU records, sub types and ops with names of modules and functions; the module lies on the path, uninstalled."""
    from bmcompiler.bmodel.bm1880 import Library
    from bmcompiler.runtime import Session

    (tmp_path / "evil_module.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\ndef run(*args):\n    1 / 0\n")
    net(tmp_path, RELU.replace('"ReLU"', '"Softmax"'))
    passes = find_target("bm1880").pipeline("int8", 2).replace("legalize", "legalize{statistics=host}")
    data = {"x": np.eye(8, dtype=np.float32)}
    result = bmcompiler.compile(tmp_path / "net.prototxt", target="bm1880", data=data, pipeline=passes)
    good = b"".join(bytes(part) for part in result.model.parts())
    assert b"tensorop" in good and b'"tensorop.softmax"' in good
    with on_path(tmp_path):
        for name in HOSTILE:
            padded = name.encode()[:15]
            commands = [renamed(bytes(part), b"tensorop\0", padded) for part in [result.model.commands[0].cmdbuf]]
            check_refused(result, commands[0], tmp_path, f"CPU function '{padded.decode()}', which is not registered")
            op = f'"tensorop.{name[:7].ljust(7, "_")}"'.encode()
            refused = renamed(bytes(result.model.commands[0].cmdbuf), b'"tensorop.softmax"', op)
            check_refused(result, refused, tmp_path, "no TensorOp is called")
        from dataclasses import replace

        library = Library("evil", x86_64=b"\x7fELF" + b"\0" * 60)
        bmodel.save(replace(result.model, libraries=[library]), tmp_path / "library.bmodel")
        Session(tmp_path / "library.bmodel").run({"x": np.zeros((1, 8), np.float32)})
    assert not (tmp_path / "ran").exists() and "evil_module" not in sys.modules


def renamed(data: bytes, old: bytes, new: bytes) -> bytes:
    """The first `old` replaced in place, with the same number of bytes."""
    at = data.index(old)
    return data[:at] + new.ljust(len(old), b"\0")[: max(len(old), len(new))] + data[at + max(len(old), len(new)) :]


def check_refused(result: bmcompiler.Result, commands: bytes, folder: Path, reason: str) -> None:
    from dataclasses import replace

    from bmcompiler.runtime import Session

    model = replace(result.model, commands=[replace(result.model.commands[0], cmdbuf=commands)])
    bmodel.save(model, folder / "evil.bmodel")
    loaded = bmodel.load(folder / "evil.bmodel")
    with pytest.raises(BMError, match=reason):
        Session(loaded).run({"x": np.zeros((1, 8), np.float32)})
