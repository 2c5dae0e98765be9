"""Work on many samples, cut into parts and spread over processes of this machine or a Dask cluster.

    with open_pool(workers=4) as pool:
        for number, result in pool.run(task, enumerate(parts)):

Results come in any order, each with its part's number. They do not depend on who computed them: a part is computed as
a whole, again from the start where a worker died.
"""

from __future__ import annotations

from bmcompiler.errors import UsageError
from bmcompiler.parallel.task import InlinePool, Pool, Task
from bmcompiler.spelling import spelled

__all__ = ["Pool", "Task", "open_pool"]
_MOST = 1024
"""Processes of this machine: more is a slip."""


def open_pool(workers: int = 1, scheduler: str | None = None) -> Pool:
    """Who computes: this process, `workers` processes of this machine, or the cluster of a Dask scheduler.

    Raises:
        UsageError: fewer than one worker or far too many, or workers and a scheduler at once.
        UnsupportedError: a scheduler without the package dask.distributed, or one that does not answer.
    """
    if workers < 1:
        raise UsageError(f"{spelled('workers')} must be 1 or more, got {workers}", remedy="1 computes in this process")
    if workers > _MOST:
        remedy = "one for each core is usual"
        raise UsageError(f"{spelled('workers')} must be at most {_MOST:,}, got {workers}", remedy=remedy)
    if scheduler is not None:
        if workers != 1:
            remedy = f"leave {spelled('workers')} out: a cluster brings its own"
            raise UsageError(f"{spelled('workers')} and {spelled('scheduler')} exclude each other", remedy=remedy)
        from bmcompiler.parallel.cluster import ClusterPool

        return ClusterPool(scheduler)
    if workers == 1:
        return InlinePool()
    from bmcompiler.parallel.processes import ProcessPool

    return ProcessPool(workers)
