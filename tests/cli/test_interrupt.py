"""Ctrl-C and SIGTERM, however early: one line or none, status 130 or 143, no traceback, nothing left."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import onnx
import pytest
from cli_files import onnx_model

from bmcompiler.cli import start

INTERRUPTED_AT_IMPORT = """
import os, signal, sys

class Interrupts:
    def find_spec(self, name, path=None, target=None):
        if name == sys.argv[-1]:
            os.kill(os.getpid(), SIGNAL)

sys.meta_path.insert(0, Interrupts())
from bmcompiler.cli import start
start.bmnet_compile()
"""


@pytest.mark.parametrize("module", ["bmcompiler.cli.compile", "click", "bmcompiler.driver", "numpy"])
def test_ctrl_c_while_a_module_is_imported(module: str) -> None:
    """The first two while the command is imported, the others while it runs."""
    script = INTERRUPTED_AT_IMPORT.replace("SIGNAL", "signal.SIGINT")
    words = [sys.executable, "-c", script, "net.onnx", "--target", "bm1880", "--name", module]
    done = subprocess.run(words, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 130
    assert done.stderr.strip().endswith(": interrupted") and "Traceback" not in done.stderr


@pytest.mark.parametrize("module", ["numpy", "bmcompiler.backends.bm1684.target", "bmcompiler.proof.prove"])
def test_sigterm_ends_without_a_word_and_leaves_nothing(module: str, tmp_path: Path) -> None:
    """While the driver is imported, while a plugin is, and behind all passes; the older output stays."""
    onnx.save(onnx_model(), tmp_path / "net.onnx")
    (tmp_path / "out.bmodel").touch()
    script = INTERRUPTED_AT_IMPORT.replace("SIGNAL", "signal.SIGTERM")
    options = ["--target", "bm1684", "--quantize", "f32", "--check", "always", "-o", "out.bmodel", "--name", module]
    words = [sys.executable, "-c", script, "net.onnx", *options]
    done = subprocess.run(words, capture_output=True, cwd=tmp_path, timeout=600, check=False)
    assert (done.returncode, done.stderr) == (143, b"")
    assert {each.name: each.stat().st_size > 0 for each in tmp_path.iterdir()} == {
        "net.onnx": True,
        "out.bmodel": False,
    }


SLOW_WORKERS = """
import os, sys, threading, time
from bmcompiler.cli import start
from bmcompiler.cli.common import command_line
import click

class Slow:
    def state(self): return None
    def __call__(self, part): os.write(1, b"%d\\n" % os.getpid()); time.sleep(60)

@click.command()
def cli():
    from bmcompiler.parallel import open_pool
    with open_pool(2) as pool:
        threading.Timer(0.3, os.kill, (os.getpid(), NUMBER)).start()
        list(pool.run(Slow(), enumerate(range(4))))

slow = sys.modules["bmcompiler.cli.slow"] = type(sys)("slow")
slow.main = command_line(cli, "bmnet-slow")
start._command("slow")()
"""


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_workers_are_gone_when_the_command_is(number: int, status: int) -> None:
    words = [sys.executable, "-c", SLOW_WORKERS.replace("NUMBER", str(int(number)))]
    begin = time.monotonic()
    done = subprocess.run(words, capture_output=True, text=True, timeout=55, check=False)
    assert done.returncode == status, done.stderr
    assert "Traceback" not in done.stderr and len(done.stderr.strip().splitlines()) <= 1
    assert time.monotonic() - begin < 50
    for worker in map(int, done.stdout.split()):
        with pytest.raises(ProcessLookupError):
            os.kill(worker, 0)


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_signals_are_not_lost_while_workers_are_started(number: int, status: int) -> None:
    """What is raised in a function that Python calls around `fork` is forgotten."""
    script = SLOW_WORKERS.replace(
        "        threading.Timer(0.3, os.kill, (os.getpid(), NUMBER)).start()\n",
        "        os.register_at_fork(after_in_parent=lambda: os.kill(os.getpid(), NUMBER))\n",
    )
    assert script != SLOW_WORKERS
    words = [sys.executable, "-c", script.replace("NUMBER", str(int(number)))]
    done = subprocess.run(words, capture_output=True, text=True, timeout=30, check=False)
    assert done.returncode == status and "ignored" not in done.stderr, done.stderr
    for worker in map(int, done.stdout.split()):
        with pytest.raises(ProcessLookupError):
            os.kill(worker, 0)


def test_every_command_begins_there() -> None:
    from importlib.metadata import entry_points

    ours = [each for each in entry_points(group="console_scripts") if each.name.startswith("bmnet-")]
    assert len(ours) == 10
    for each in ours:
        assert each.value == f"{start.__name__}:{each.name.replace('-', '_')}"
        assert callable(getattr(start, each.name.replace("-", "_")))
