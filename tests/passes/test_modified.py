"""Every pass of every chip's pipeline says truthfully whether it changed the module."""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np
import pytest
from level_nets import MODES, SHAPES, files_of, noise

from bmcompiler.driver import load_network
from bmcompiler.ir import Module
from bmcompiler.passmanager import PassContext, Pipeline
from bmcompiler.target import find_target


def content(module: Module) -> str:
    """The text of a module and its weights."""
    parts = [
        f"{key}\0{hashlib.sha256(np.asarray(module.weights[key]).tobytes()).hexdigest()}" for key in module.weights
    ]
    return "\n".join([str(module), *sorted(parts)])


@pytest.mark.parametrize("name", ["lenet", "resnet8"])
@pytest.mark.parametrize(("target", "precision"), [*MODES, ("dv700", "f16")])
def test_a_pass_says_whether_it_changed_anything(tmp_path: Path, name: str, target: str, precision: str) -> None:
    files, shape = files_of(name, tmp_path), [1, *SHAPES[name]]
    module, chip = load_network(*files, shapes=[shape]), find_target(target)
    ctx = PassContext(target=chip, data={module.main.input_names[0]: noise(shape)})
    for each in Pipeline.parse(chip.pipeline(precision, 2)):
        before = content(module)
        modified = each.run(module, ctx).modified
        assert modified == (content(module) != before), each
