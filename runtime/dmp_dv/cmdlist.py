"""Command lists (dmp_dv.h, "Command lists"; dv.md 1.7, 6)."""

from __future__ import annotations

import errno
import time
from threading import Lock
from typing import NamedTuple

import numpy as np

from bmcompiler.backends.dv.driver.checks import FAILED, Refusal
from bmcompiler.backends.dv.driver.checks_commit import check_conv_commit, check_fc_commit
from bmcompiler.backends.dv.driver.checks_other import check_command, check_header
from bmcompiler.backends.dv.driver.commands import ConvCommand, FcCommand
from bmcompiler.backends.dv.driver.structs import BUF, CMDRAW, LAYOUTS, DeviceType
from bmcompiler.errors import BMError, SimulatorError, UnsupportedError
from bmcompiler.numeric.arrays import Bytes
from bmcompiler.runtime.dmp_dv.buffers import Buffer, readable
from bmcompiler.runtime.dmp_dv.context import DvContext
from bmcompiler.runtime.dmp_dv.handles import LOCK, Handle, release, retain
from bmcompiler.runtime.dmp_dv.memory import DvMem, memory_of
from bmcompiler.runtime.dmp_dv.messages import refuse, report
from bmcompiler.runtime.dmp_dv.prototypes import DRIVER
from bmcompiler.runtime.dmp_dv.queue import Execution, queue_of
from bmcompiler.runtime.simulator.dv import CommandPlan, bind_command

_REMEMBERED = 1024  # executions whose outcome a list keeps


class _Command(NamedTuple):
    kind: DeviceType
    version: int
    data: bytes


@DRIVER.handle("dmp_dv_cmdlist")
class DvCmdlist(Handle):
    """Commands of one device type; holds its context and every memory its commands name."""

    kind = "command list"

    def __init__(self, ctx: DvContext) -> None:
        super().__init__()
        self.ctx = ctx
        self.commands: list[_Command] = []
        self.failed_adds = 0
        self.memories: dict[int, DvMem] = {}
        self.plans: list[CommandPlan] | None = None
        self.last_time = 0
        self._executions: dict[int, Execution] = {}
        self._lock = Lock()
        ctx.adopt(self)

    def describe(self) -> str:
        return f"{super().describe()}, {len(self.commands)} command(s)"

    def free(self) -> None:
        for mem in self.memories.values():
            mem.drop()
        self.memories.clear()
        self.plans = None
        self.ctx.forget(self)

    def bytes_of(self, value: int) -> Bytes:
        """The memory behind a number in a command of this list."""
        mem = self.memories.get(value)
        if mem is None:
            raise SimulatorError(f"0x{value:x} is not a memory handle of this list")
        return mem.bytes

    def run(self) -> None:
        """Execute all commands in order, on the thread of the queue."""
        for index, plan in enumerate(self.plans or ()):
            try:
                plan.run()
            except BMError as error:
                raise SimulatorError(f"command {index}: {error}") from error

    def schedule(self) -> int:
        """Queue one execution; the list lives until it has finished."""
        self.hold()
        execution = Execution(self.run, self.drop)
        with self._lock:
            number = queue_of(self.commands[0].kind).submit(execution)
            self._executions[number] = execution
            if len(self._executions) > _REMEMBERED:
                del self._executions[next(iter(self._executions))]
        return number

    def outcome(self, number: int) -> str | None:
        """After the wait: take the time, and say what went wrong."""
        with self._lock:
            execution = self._executions.get(number)
        if execution is None:
            return None
        self.last_time = max(1, round((time.perf_counter() - execution.started) * 1e6))
        return execution.failure


@DRIVER.checked
def dmp_dv_cmdlist_create(ctx: DvContext) -> DvCmdlist | None:
    """An empty list; None on error. Thread-safe."""
    return DvCmdlist(ctx)


@DRIVER.checked
def dmp_dv_cmdlist_release(cmdlist: DvCmdlist | None) -> int:
    """Give back a reference; the counter after the call, 0 for NULL."""
    return release(cmdlist, DvCmdlist, "cmdlist")


@DRIVER.checked
def dmp_dv_cmdlist_retain(cmdlist: DvCmdlist | None) -> int:
    """Take a reference; the counter after the call, 0 for NULL."""
    return retain(cmdlist, DvCmdlist, "cmdlist")


@DRIVER.checked
def dmp_dv_cmdlist_add_raw(cmdlist: DvCmdlist, cmd: Buffer | None) -> int:
    """Check and copy a raw command: any buffer that begins with a structure of `backends.dv.driver.structs`.

    Returns 0; -1, EINVAL or ENOTSUP as the driver does (dv.md 1.7), with the reason as last error message.
    """
    if cmdlist.plans is not None:
        return refuse(FAILED, "the command list is committed already")
    if cmd is None:
        return refuse(FAILED, "cmd is NULL")
    raw = readable(cmd)
    if raw is None:
        return refuse(errno.EINVAL, "cmd is not a contiguous buffer")
    refusal = _add(cmdlist, raw.tobytes())
    if refusal is None:
        return 0
    cmdlist.failed_adds += 1
    return refuse(refusal.code, refusal.text)


def _add(cmdlist: DvCmdlist, data: bytes) -> Refusal | None:
    refusal = check_header(data)
    if refusal:
        return refusal
    header = np.frombuffer(data, CMDRAW, 1)[0]
    command = _Command(DeviceType(int(header["device_type"])), int(header["version"]), data[: int(header["size"])])
    memories = {value: memory_of(value) for value in _handles(command)}
    for value, mem in memories.items():
        if mem is None:
            return Refusal(errno.EINVAL, "BUF_HANDLE", f"0x{value:x} is not a memory handle")
    sizes = {value: mem.size for value, mem in memories.items() if mem is not None}
    refusal = check_command(command.data, cmdlist.ctx.chip, sizes.__getitem__)
    if refusal:
        return refusal
    with LOCK:
        for value, mem in memories.items():
            if mem is not None and value not in cmdlist.memories:
                mem.hold()
                cmdlist.memories[value] = mem
    cmdlist.commands.append(command)
    return None


def _handles(command: _Command) -> set[int]:
    """Memory handles that a command uses; NULL and the slots of unused runs are left out."""
    if command.kind == DeviceType.CONV:
        conv = ConvCommand.decode(command.data)
        weights = [run.weight_buf for run in conv.runs]
        used = [conv.u8_table, conv.input_buf, conv.output_buf, conv.eltwise_buf, *weights]
        return {buf.mem for buf in used if buf.mem}
    layout = LAYOUTS[command.kind, command.version]
    record = np.frombuffer(command.data, layout)[0]
    names = [name for name, (dtype, *_) in (layout.fields or {}).items() if dtype == BUF]
    return {int(record[name]["mem"]) for name in names} - {0}


@DRIVER.checked
def dmp_dv_cmdlist_commit(cmdlist: DvCmdlist) -> int:
    """Make the list ready for execution.

    Returns 0; EINVAL for NULL or when no command was accepted, ENODATA for an empty list, EALREADY the second time;
    -1 for lists of several device types and for what the kernel refuses; ENOTSUP where the device cannot run a
    command, or the simulator finds no documented meaning for it.
    """
    if cmdlist.plans is not None:
        return refuse(errno.EALREADY, "the command list is committed already")
    if not cmdlist.commands:
        if cmdlist.failed_adds:
            return refuse(errno.EINVAL, "no command of the list was accepted")
        return refuse(errno.ENODATA, "the command list is empty")
    kinds = {command.kind for command in cmdlist.commands}
    if len(kinds) > 1:
        return refuse(FAILED, "commands of several device types in one list are not implemented")
    if kinds & {DeviceType.IPU, DeviceType.MAXIMIZER} and len(cmdlist.commands) > 1:
        return refuse(FAILED, "the kernel takes one IPU or MAXIMIZER command per list (EBUSY)")
    plans = []
    for index, command in enumerate(cmdlist.commands):
        try:
            refusal = _commit_refusal(cmdlist, command)
            if refusal:
                return refuse(FAILED, f"command {index}: {refusal.text}")
            plans.append(
                bind_command(command.kind, command.data, cmdlist.ctx.chip, cmdlist.bytes_of, cmdlist.ctx.accumulator)
            )
        except UnsupportedError as error:
            return refuse(errno.ENOTSUP, f"command {index}: {error}")
        except BMError as error:
            return refuse(FAILED, f"command {index}: {error}")
    cmdlist.plans = plans
    return 0


def _commit_refusal(cmdlist: DvCmdlist, command: _Command) -> Refusal | None:
    def size_of(value: int) -> int:
        return cmdlist.bytes_of(value).size

    if command.kind == DeviceType.CONV:
        return check_conv_commit(ConvCommand.decode(command.data), cmdlist.ctx.chip, size_of)
    if command.kind == DeviceType.FC:
        return check_fc_commit(FcCommand.decode(command.data), size_of)
    return None


@DRIVER.checked
def dmp_dv_cmdlist_exec(cmdlist: DvCmdlist) -> int:
    """Schedule the list; returns an id > 0 at once, or -EINVAL for NULL and before commit. Thread-safe.

    The vendor's library returns +EINVAL for NULL, which looks like an id (dv.md 1.8).
    """
    if cmdlist.plans is None:
        return refuse(-errno.EINVAL, "the command list is not committed")
    return cmdlist.schedule()


@DRIVER.checked
def dmp_dv_cmdlist_wait(cmdlist: DvCmdlist, exec_id: int) -> int:
    """Wait until an execution, and all before it on its device type, have finished. Thread-safe.

    Returns 0; EINVAL for NULL, a negative id and one that was never scheduled (the vendor's library would wait for it
    for ever); -1 before commit and when the execution failed.
    """
    if cmdlist.plans is None:
        return refuse(FAILED, "the command list is not committed")
    if exec_id < 0:
        return refuse(errno.EINVAL, f"exec_id {exec_id} is negative")
    if not queue_of(cmdlist.commands[0].kind).wait(exec_id):
        return refuse(errno.EINVAL, f"exec_id {exec_id} was never scheduled")
    failure = cmdlist.outcome(exec_id)
    return 0 if failure is None else refuse(FAILED, failure)


@DRIVER.checked
def dmp_dv_cmdlist_get_last_exec_time(cmdlist: DvCmdlist) -> int:
    """Microseconds from the start of the last awaited execution to the end of its wait; 0 before, -1 on error."""
    if cmdlist.plans is None:
        report("the command list is not committed")
        return -1
    return cmdlist.last_time
