"""Ctrl-C, however early: one line, status 130, no traceback."""

from __future__ import annotations

import subprocess
import sys

import pytest

from bmcompiler.cli import start

INTERRUPTED_AT_IMPORT = """
import os, signal, sys

class Interrupts:
    def find_spec(self, name, path=None, target=None):
        if name == sys.argv[-1]:
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, Interrupts())
from bmcompiler.cli import start
start.bmnet_compile()
"""


@pytest.mark.parametrize("module", ["bmcompiler.cli.compile", "click", "bmcompiler.driver", "numpy"])
def test_ctrl_c_while_a_module_is_imported(module: str) -> None:
    """The first two while the command is imported, the others while it runs."""
    words = [sys.executable, "-c", INTERRUPTED_AT_IMPORT, "net.onnx", "--target", "bm1880", "--name", module]
    done = subprocess.run(words, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 130
    assert done.stderr.strip().endswith(": interrupted") and "Traceback" not in done.stderr


def test_every_command_begins_there() -> None:
    from importlib.metadata import entry_points

    ours = [each for each in entry_points(group="console_scripts") if each.name.startswith("bmnet-")]
    assert len(ours) == 10
    for each in ours:
        assert each.value == f"{start.__name__}:{each.name.replace('-', '_')}"
        assert callable(getattr(start, each.name.replace("-", "_")))
