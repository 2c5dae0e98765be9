"""PyTorch modules straight from training code; without torch only what is said of that."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import bmcompiler
from bmcompiler.errors import UnsupportedError, UsageError


def test_without_torch_it_is_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(UnsupportedError, match=r"no torch. Remedy: pip install 'bmcompiler\[torch\]'"):
        bmcompiler.compile("net.onnx", target="bm1684", sample_inputs=np.zeros((1, 3, 8, 8)))


def test_other_networks_do_not_import_it() -> None:
    program = (
        "import sys, bmcompiler, bmcompiler.errors\n"
        "try: bmcompiler.compile('missing.onnx', target='bm1684')\n"
        "except bmcompiler.errors.BMError: pass\n"
        "print('torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


@pytest.fixture
def torch() -> Any:
    pytest.importorskip("onnxscript")
    return pytest.importorskip("torch")


def test_a_module_computes_what_torch_computes(torch: Any) -> None:
    torch.manual_seed(0)
    layers = torch.nn
    net = layers.Sequential(
        layers.Conv2d(3, 8, 3, padding=1), layers.BatchNorm2d(8), layers.ReLU(), layers.Dropout(), layers.Flatten()
    )
    net.append(layers.Linear(8 * 64, 10))
    net.train()
    x = torch.randn(2, 3, 8, 8)
    result = bmcompiler.compile(net, target="bm1684", sample_inputs=x)
    assert all(each.training for each in net.modules())  # it stays as it was
    (found,) = result.run(x.numpy()).values()
    with torch.no_grad():
        assert np.abs(found - net.eval()(x).numpy()).max() < 1e-4
    quantized = bmcompiler.compile(
        net, target="bm1684x", quantize="int8", data=torch.randn(8, 3, 8, 8), sample_inputs=x
    )
    assert quantized.precision == "int8"


def test_inputs_by_name_and_in_order(torch: Any) -> None:
    class Two(torch.nn.Module):  # type: ignore[misc]
        def forward(self, a: Any, b: Any) -> Any:
            return a * 2 - b

    a, b = np.ones((1, 4), np.float32), np.full((1, 4), 3, np.float32)
    for inputs in ({"b": b, "a": a}, (a, b)):
        (found,) = bmcompiler.compile(Two(), target="bm1684", sample_inputs=inputs).run({"a": a, "b": b}).values()
        assert found.tolist() == [[-1] * 4]


def test_what_is_no_module_or_has_no_shapes(torch: Any) -> None:
    with pytest.raises(UsageError, match="give sample_inputs"):
        bmcompiler.compile(torch.nn.ReLU(), target="bm1684")
    with pytest.raises(UsageError, match=r"for a torch.nn.Module, got str"):
        bmcompiler.compile("net.onnx", target="bm1684", sample_inputs=torch.zeros(1, 3))


def test_a_module_that_torch_does_not_export_says_why(torch: Any) -> None:
    class Branches(torch.nn.Module):  # type: ignore[misc]
        def forward(self, x: Any) -> Any:
            return x * 2 if x.sum() > 0 else x

    with pytest.raises(UnsupportedError, match=r"torch does not export Branches: .+ Remedy: torch.export"):
        bmcompiler.compile(Branches(), target="bm1684", sample_inputs=torch.ones(1, 4))


def test_inputs_may_be_nested_and_numbers_are_constants(torch: Any) -> None:
    class Nested(torch.nn.Module):  # type: ignore[misc]
        def forward(self, pair: Any, factor: float) -> Any:
            return (pair[0] + pair[1]) * factor

    a, b = np.ones((1, 4), np.float32), np.full((1, 4), 3, np.float32)
    result = bmcompiler.compile(Nested(), target="bm1684", sample_inputs=((a, b), 2.0))
    one, other = (each.name for each in result.session().inputs)
    (found,) = result.run({one: a, other: b}).values()
    assert found.tolist() == [[8] * 4]


def test_inputs_that_the_module_does_not_take_are_a_sentence(torch: Any) -> None:
    net = torch.nn.Conv2d(3, 4, 1)
    x = torch.zeros(1, 3, 8, 8)
    for inputs, reason in (
        (torch.zeros(1, 2, 8, 8), "3 channels, but got 2"),
        ((x, x), "takes 2 positional arguments but 3 were given"),
        ({"y": x}, "unexpected keyword argument 'y'"),
        ("x", r"got \(str"),
        ((), "missing 1 required positional argument"),
    ):
        with pytest.raises(UsageError, match=f"Conv2d cannot be called with these sample_inputs: .*{reason}.* Remedy:"):
            bmcompiler.compile(net, target="bm1684", sample_inputs=inputs)


def test_a_module_without_results_is_a_sentence(torch: Any) -> None:
    class Silent(torch.nn.Module):  # type: ignore[misc]
        def forward(self, x: Any) -> None:
            pass

    with pytest.raises(UsageError, match="Silent gives no tensor"):
        bmcompiler.compile(Silent(), target="bm1684", sample_inputs=torch.zeros(1, 3))
