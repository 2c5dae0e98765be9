"""What canonicalization makes of real exported networks (fetched by models/fetch.py)."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from nets import apply, names

from bmcompiler.ir import Module
from bmcompiler.plugins.registry import entry_points

MODELS = Path(__file__).parents[2] / "models" / "third_party"


def canonical(name: str, shape: tuple[int, ...]) -> Module:
    path = MODELS / f"{name}.onnx"
    if not path.exists():
        pytest.skip(f"{path.name} is not there: run python models/fetch.py")
    module: Module = entry_points("bmcompiler.frontends")["onnx"]().load(path, shapes=[shape])
    apply(module, "canonicalize")
    return module


@pytest.mark.parametrize(("name", "size"), [("mtcnn_rnet", 24), ("mtcnn_onet", 48)])
def test_nhwc_exports_keep_only_the_permute_of_their_input(name: str, size: int) -> None:
    ops = names(canonical(name, (1, size, size, 3)))
    assert ops[0] == "permute" and ops.count("permute") == 1
    assert "add" not in ops  # every bias went into its matrix product


def test_fully_convolutional_nhwc_export_permutes_only_its_ends() -> None:
    ops = names(canonical("mtcnn_pnet", (1, 120, 160, 3)))
    assert ops[0] == "permute" and ops[-3:] == ["permute", "softmax", "permute"] and ops.count("permute") == 3


def test_paddle_export_has_its_batch_norms_folded_and_activations_found() -> None:
    ops = Counter(names(canonical("ppocr_v2_cls", (1, 3, 48, 192))))
    assert not {"batch_norm", "scale", "clip", "div"} & set(ops)
    assert (ops["conv"], ops["hard_swish"], ops["hard_sigmoid"], ops["add"]) == (53, 18, 9, 7)
