"""Run commands through the driver API on small device memories."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bmcompiler.backends.dv.chip import CHIP, DvChip
from bmcompiler.backends.dv.driver.commands import Buf
from bmcompiler.backends.dv.formats.layout import nchw_to_whc8, whc8_to_nchw
from bmcompiler.runtime import dmp_dv as dv


class Board:
    """A context with a bump allocator over one memory: `put` data, `room` for results, `run` commands."""

    def __init__(self, chip: DvChip = CHIP, size: int = 1 << 22, **options: Any) -> None:
        self.ctx = dv.dmp_dv_context_create(chip, **options)
        self.mem = dv.dmp_dv_mem_alloc(self.ctx, size)
        assert self.mem is not None
        data = dv.dmp_dv_mem_map(self.mem)
        assert data is not None
        self.data, self.used = data, 0
        self.data[:] = 0xCD

    def room(self, size: int) -> Buf:
        start = self.used
        self.used += -(-size // 16) * 16 + 64  # a guard between buffers
        assert self.used <= self.data.size
        return Buf(self.mem.value if self.mem else 0, start)

    def put(self, values: NDArray[Any]) -> Buf:
        raw = np.ascontiguousarray(values).view(np.uint8).reshape(-1)
        buf = self.room(raw.size)
        self.data[buf.offs : buf.offs + raw.size] = raw
        return buf

    def put_map(self, nchw: NDArray[Any]) -> Buf:
        return self.put(nchw_to_whc8(np.asarray(nchw, np.float16)))

    def get_map(self, buf: Buf, shape: tuple[int, int, int, int]) -> NDArray[np.float16]:
        size = 2 * int(np.prod(shape))
        flat = self.data[buf.offs : buf.offs + size].view(np.float16)
        return whc8_to_nchw(flat, *shape[1:])

    def list_of(self, *commands: bytes) -> dv.DvCmdlist:
        cmdlist = dv.dmp_dv_cmdlist_create(self.ctx)
        assert cmdlist is not None
        for command in commands:
            code = dv.dmp_dv_cmdlist_add_raw(cmdlist, command)
            assert code == 0, dv.dmp_dv_get_last_error_message()
        return cmdlist

    def run(self, *commands: bytes) -> None:
        cmdlist = self.list_of(*commands)
        assert dv.dmp_dv_cmdlist_commit(cmdlist) == 0, dv.dmp_dv_get_last_error_message()
        code = dv.dmp_dv_cmdlist_wait(cmdlist, dv.dmp_dv_cmdlist_exec(cmdlist))
        assert code == 0, dv.dmp_dv_get_last_error_message()
        dv.dmp_dv_cmdlist_release(cmdlist)

    def close(self) -> None:
        dv.dmp_dv_mem_release(self.mem)
        assert dv.dmp_dv_context_release(self.ctx) == 0


@contextmanager
def board(chip: DvChip = CHIP, **options: Any) -> Iterator[Board]:
    made = Board(chip, **options)
    yield made
    made.close()
