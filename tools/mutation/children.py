"""Processes that run broken programs: forked from one that has imported what others wrote, which takes long."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from mutation.targets import ROOT

IMPORTED = ["numpy", "ml_dtypes", "onnx", "pytest", "hypothesis.extra.numpy"]
"""Nothing of ours: a fault is made on import."""


def finished(work: Callable[..., None], args: tuple[Any, ...], seconds: float) -> int | None:
    """Call `work(*args)` in a new process; its exit code, None where it took longer and was ended."""
    os.environ["OPENBLAS_NUM_THREADS"] = "1"
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(IMPORTED)
    child = context.Process(target=work, args=args)
    child.start()
    child.join(seconds)
    if child.exitcode is None:
        with contextlib.suppress(ProcessLookupError):  # it has no group of its own yet, or ended just now
            os.killpg(child.pid or 0, signal.SIGKILL)
        child.kill()
        child.join()
        return None
    return child.exitcode


def begin(told: Mapping[str, str], output: str) -> None:
    """In the new process: a group of its own, the environment, and where its words go."""
    os.setsid()
    os.chdir(ROOT)
    os.environ.update(told)
    file = os.open(output, os.O_WRONLY | os.O_CREAT)
    os.dup2(file, 1)
    os.dup2(file, 2)


def pytest(told: Mapping[str, str], files: Sequence[str], output: str) -> None:
    """Work of a child: pytest with the plugin of this folder, which reads what it is `told` from the environment."""
    begin(told, output)
    import pytest

    options = ["-q", "-x", "-p", "mutation.inside", "-p", "no:cacheprovider", "--hypothesis-seed=1"]
    sys.exit(pytest.main([*options, *files]))
