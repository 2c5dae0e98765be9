"""The rows as Python functions with the library's names."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from bmcompiler.backends.bm168x.calls import Arguments, MissingFunction, Source, bound, source_of
from bmcompiler.backends.bm1684.okkernel.arguments import check, converted
from bmcompiler.backends.bm1684.okkernel.control import FACTS
from bmcompiler.backends.bm1684.okkernel.recorder import Recorder, current
from bmcompiler.backends.bm1684.okkernel.rows import Function
from bmcompiler.backends.bm1684.okkernel.table import TABLE
from bmcompiler.backends.bm1684.okkernel.unavailable import UNAVAILABLE
from bmcompiler.errors import EncodingError, UsageError

_ANSWERS = {row.name for row in FACTS}


class LibraryFunction:
    """One function of okkernel; arguments by position or by the names of the C prototype, None for NULL.

    Functions that answer a question need no kernel around them. Raises UsageError for arguments that break a rule.
    """

    def __init__(self, row: Function) -> None:
        self.row = row
        self.__name__ = self.__qualname__ = row.name
        self.__module__ = "bmcompiler.okkernel"
        self.__doc__ = f"{row.prototype}\n\n{row.formula}. See docs/okkernel.md."
        kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
        made = [inspect.Parameter(each.name, kind, annotation=each.type) for each in row.parameters]
        self.__signature__ = inspect.Signature(made)

    def __repr__(self) -> str:
        return f"<{self.row.prototype}>"

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        return self.called(source_of(self.row.name, sys._getframe(1)), arguments, named)

    def called(self, source: Source, arguments: Sequence[Any], named: Mapping[str, Any]) -> Any:
        """What a call gives that stands at `source`."""
        values = bound(self.row, arguments, named, converted)
        check(self.row, values)
        return _emitted(self.row, values, source)


def _emitted(row: Function, values: Arguments, source: Source) -> Any:
    try:
        recorder = Recorder() if row.name in _ANSWERS else current()
        with recorder.called(source):
            return row.emit(recorder, values)
    except (EncodingError, UsageError) as error:
        if not error.reason.startswith(row.name):
            error.reason = f"{row.name}: {error.reason}"
        raise


MISSING = {name: MissingFunction(name, why) for name, why in UNAVAILABLE.items()}
FUNCTIONS = {name: LibraryFunction(row) for name, row in TABLE.items()}
