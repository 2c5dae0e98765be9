"""What the benchmarks share: the shortest of a few runs."""

from __future__ import annotations

import time
from collections.abc import Callable


def best(function: Callable[[], object], repeats: int = 5) -> float:
    """Shortest of a few runs, seconds."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        function()
        times.append(time.perf_counter() - start)
    return min(times)
