"""Where the commands begin. Ctrl-C while a command is still being imported ends it like later: one line, status 130.

SIGTERM ends it likewise, without a word, status 143.
Imported by the console scripts only: from here on SIGINT is ours, until the command itself runs.
"""

from __future__ import annotations

import gc
import os
import sys
from _signal import SIG_IGN, SIGINT, SIGTERM, default_int_handler, signal  # type: ignore[import-not-found]  # signal imports enum: too late  # fmt: skip

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType


def _leave(number: int, frame: FrameType | None) -> None:
    """End at once: nothing has been written yet, and half-imported modules are no place for an exception."""
    os.write(2, f"\n{os.path.basename(sys.argv[0])}: interrupted\n".encode())
    os._exit(130)


class _Terminated(BaseException):
    """SIGTERM, as an exception that nobody takes for one of a plugin."""


def _terminate(number: int, frame: FrameType | None) -> None:
    """End as an exception does: temporary files go, workers too. Further requests change nothing."""
    signal(SIGTERM, SIG_IGN)
    raise _Terminated


signal(SIGINT, _leave)


def _command(module: str) -> Callable[[], None]:
    def main() -> None:
        from importlib import import_module

        from bmcompiler.garbage import OBJECTS

        gc.set_threshold(OBJECTS)
        run = import_module(f"bmcompiler.cli.{module}").main
        try:
            signal(SIGINT, default_int_handler)
            signal(SIGTERM, _terminate)
            run()
        except KeyboardInterrupt:
            _leave(SIGINT, None)
        except _Terminated:
            os._exit(128 + SIGTERM)
        except SystemExit as ended:
            if ended.code == 128 + SIGINT:  # all is put away, and threads of workers that are gone may wait for ever
                os._exit(128 + SIGINT)
            raise

    return main


bmnet_accuracy = _command("accuracy")
bmnet_calibrate = _command("calibrate")
bmnet_capi = _command("capi")
bmnet_compile = _command("compile")
bmnet_doctor = _command("doctor")
bmnet_eval = _command("evaluate")
bmnet_llm = _command("llm")
bmnet_opt = _command("opt")
bmnet_run = _command("run")
bmnet_tool = _command("tool")
