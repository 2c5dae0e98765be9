"""Processes of this machine. One that dies costs the time of the parts that were under way, not their results."""

from __future__ import annotations

import gc
import multiprocessing
import signal
import sys
from collections.abc import Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from types import TracebackType
from typing import Any

from bmcompiler.errors import RuntimeUseError
from bmcompiler.parallel.signals import held_signals
from bmcompiler.parallel.task import P, Pool, R, Task
from bmcompiler.spelling import spelled

_AHEAD = 2
"""Parts per worker that wait or are computed: the next one is there when one is done."""
_SECONDS = 5.0
"""For a worker to go once it is told to."""
_MOST_DEATHS = 3
"""Deaths of workers in a row, without one part done between them, that are taken for chance."""


class ProcessPool(Pool):
    """A pool of `workers` processes of this host."""

    def __init__(self, workers: int) -> None:
        self.workers = workers
        self._executor: ProcessPoolExecutor | None = None

    def run(self, task: Task[Any, P, R], parts: Iterable[tuple[int, P]]) -> Iterator[tuple[int, R]]:
        self.close()
        if _context().get_start_method() == "fork":
            task.state()  # the workers inherit it
        source, deaths = iter(parts), 0
        again: list[tuple[int, P]] = []
        running: dict[Future[R], tuple[int, P]] = {}
        while True:
            self._feed(task, source, again, running)
            if not running:
                return
            done, _ = wait(running, return_when=FIRST_COMPLETED)
            broken = [future for future in done if isinstance(future.exception(), BrokenProcessPool)]
            for future in done.difference(broken):
                number, _ = running.pop(future)
                deaths = 0
                yield number, future.result()
            if broken:
                deaths += 1
                again += running.values()
                running.clear()
                self.close()
                self._refuse(deaths, again)

    def _feed(
        self,
        task: Task[Any, P, R],
        source: Iterator[tuple[int, P]],
        again: list[tuple[int, P]],
        running: dict[Future[R], tuple[int, P]],
    ) -> None:
        """Keep every worker busy."""
        while len(running) < self.workers * _AHEAD:
            item = again.pop(0) if again else next(source, None)
            if item is None:
                return
            try:
                running[self._submit(task, item[1])] = item
            except BrokenProcessPool:  # a worker died since the last result: the futures under way will say so
                again.insert(0, item)
                if running:
                    return
                self.close()

    def _submit(self, task: Task[Any, P, R], part: P) -> Future[R]:
        """The first part starts the workers."""
        if self._executor is not None:
            return self._executor.submit(_compute, part)
        with held_signals():
            self._executor = ProcessPoolExecutor(self.workers, _context(), _begin, (task,))
            return self._executor.submit(_compute, part)

    @staticmethod
    def _refuse(deaths: int, again: list[Any]) -> None:
        if deaths > _MOST_DEATHS:
            raise RuntimeUseError(
                f"worker processes died {deaths} times in a row while they computed part {again[0][0]}",
                remedy=f"use fewer {spelled('workers')} if memory is short, or one to see what happens",
            )

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Who was interrupted does not wait for parts that nobody will ask for, nor for threads that feed them."""
        executor = self._executor
        if kind is None or executor is None:
            return self.close()
        workers = list((executor._processes or {}).values())  # no public way before Python 3.14
        for worker in workers:
            worker.terminate()
        executor.shutdown(wait=False, cancel_futures=True)
        for worker in workers:
            worker.join(_SECONDS)
        self._executor = None

    def close(self) -> None:
        if self._executor is not None:
            self._executor.shutdown(wait=True, cancel_futures=True)
            self._executor = None


def _context() -> multiprocessing.context.BaseContext:
    """Forked where that is safe: such workers start at once and share the loaded model."""
    return multiprocessing.get_context("fork" if sys.platform == "linux" else "spawn")


_task: list[Task[Any, Any, Any]] = []
"""Of a worker: the task it was started for, which is sent once and not with every part."""


def _begin(task: Task[Any, Any, Any]) -> None:
    """Start of a worker; workers share the cores among them, so BLAS has one thread in each."""
    from bmcompiler.numeric.blas import one_blas_thread

    gc.freeze()  # what the parent left as garbage may wait for threads that only the parent has: ONNX Runtime's does
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches all of a terminal; the one that leads them says so
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    one_blas_thread.__enter__()
    _task[:] = [task]


def _compute(part: Any) -> Any:
    return _task[0](part)
