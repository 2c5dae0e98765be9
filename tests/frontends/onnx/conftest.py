"""Old releases of the reference, all that there is for Python 3.10, are wrong or refuse in a few of these cases."""

from __future__ import annotations

import pytest
from reference_faults import runtime_version

_SOUND_SINCE = (1, 24)
_FAULTS = {
    "-ReverseSequence-": "reverses other elements than the definition says",
    "[Einsum4]": "mistakes the size of its own result",
    "ReduceSum-13]": "cannot reduce over all axes of this case",
    "ReduceSum-21]": "cannot reduce over all axes of this case",
}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip, with the reason, what an old ONNX Runtime cannot judge."""
    version = runtime_version()
    if version is None or version >= _SOUND_SINCE:
        return
    release = ".".join(map(str, version))
    for item in items:
        for name, fault in _FAULTS.items():
            if name in item.nodeid:
                item.add_marker(pytest.mark.skip(reason=f"ONNX Runtime {release} {fault}"))
