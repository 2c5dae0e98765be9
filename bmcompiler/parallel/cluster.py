"""Workers of an existing Dask cluster (package dask.distributed)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from bmcompiler.errors import UnsupportedError
from bmcompiler.parallel.task import P, Pool, R, Task

_AHEAD = 2
_ANSWER = "10s"
"""How long a scheduler may take to answer."""
_RETRIES = 3
"""How often a part is computed again after its worker died (Dask's `retries` and `allowed-failures`)."""


class ClusterPool(Pool):
    """The workers of the scheduler at an address such as tcp://HOST:8786. They need bmcompiler, but no files."""

    def __init__(self, address: str) -> None:
        try:
            import distributed
        except ImportError:
            raise UnsupportedError(
                "a scheduler needs the package dask.distributed", remedy='pip install "bmcompiler[cluster]"'
            ) from None
        try:
            connect: Any = distributed.Client  # the package has no types
            self._client: Any = connect(address, timeout=_ANSWER, set_as_default=False)
        except (OSError, ValueError) as error:
            reason = " ".join(str(error).split())
            raise UnsupportedError(
                f"the scheduler at {address} does not answer ({reason})",
                remedy="start one with `dask scheduler` and workers with `dask worker`, and give its address",
            ) from None

    def run(self, task: Task[Any, P, R], parts: Iterable[tuple[int, P]]) -> Iterator[tuple[int, R]]:
        import distributed

        sent = self._client.scatter(task, broadcast=True, hash=False)
        source = iter(parts)
        numbers: dict[Any, int] = {}
        completed: Any = distributed.as_completed
        queue = completed(loop=self._client.loop)

        def submit() -> None:
            item = next(source, None)
            if item is not None:
                future = self._client.submit(_computed, sent, item[1], pure=False, retries=_RETRIES)
                numbers[future] = item[0]
                queue.add(future)

        for _ in range(max(1, sum(self._client.nthreads().values())) * _AHEAD):
            submit()
        for future in queue:
            result = future.result()
            submit()
            yield numbers.pop(future), result

    def close(self) -> None:
        self._client.close()


def _computed(task: Task[Any, P, R], part: P) -> R:
    return task(part)
