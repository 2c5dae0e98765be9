"""Functions of a kernel library as C programs call them, of whose kernels calls are recorded."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from bmcompiler.backends.bm168x.calls import Source
from bmcompiler.capi.api import Api
from bmcompiler.capi.places import place
from bmcompiler.errors import BMError


class _Function(Protocol):
    """Of the Python library."""

    def called(self, source: Source, arguments: tuple[Any, ...], named: dict[str, Any]) -> Any:
        """What a call gives that stands at `source`."""


class _Recorder(Protocol):
    """What a kernel's calls are noted by."""

    refused: Exception | None


def kernel_calls(
    functions: Mapping[str, _Function], api: Api, recorder: Callable[[], _Recorder | None]
) -> Callable[[str], Callable[..., Any]]:
    """The functions by their names; a refused call makes its kernel's launch fail, and says where it stands."""

    def called(name: str) -> Callable[..., Any]:
        function, stores = functions[name], bool(api.functions[name].outs)

        def call(*values: Any) -> Any:
            source = Source(name, *place())
            try:
                found = function.called(source, values, {})
                return (None, found) if stores else found
            except Exception as error:
                if isinstance(error, BMError) and error.reason.startswith(name):
                    error.reason = f"{source}{error.reason[len(name) :]}"
                recording = recorder()
                if recording is not None and recording.refused is None:
                    recording.refused = error
                raise

        return call

    return called
