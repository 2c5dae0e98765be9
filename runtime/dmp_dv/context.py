"""Contexts: the device and who uses it (dmp_dv.h, "Context"; dv.md 6)."""

from __future__ import annotations

import errno
import logging
import os

import numpy as np

from bmcompiler.backends.dv.arithmetic.accumulate import Accumulator
from bmcompiler.backends.dv.chip import CHIP, DvChip
from bmcompiler.backends.dv.driver.structs import INFO, INFO_V0, DeviceType
from bmcompiler.runtime.dmp_dv.buffers import Buffer, writable
from bmcompiler.runtime.dmp_dv.handles import LOCK, Handle, release, retain
from bmcompiler.runtime.dmp_dv.messages import refuse, report
from bmcompiler.runtime.dmp_dv.prototypes import DRIVER

DEBUG_VARIABLE = "DMP_DV_DEBUG"

log = logging.getLogger("bmcompiler.runtime.dmp_dv")


@DRIVER.handle("dmp_dv_context")
class DvContext(Handle):
    """A simulated device with its facts; see `dmp_dv_context_create`."""

    kind = "context"

    def __init__(self, chip: DvChip, accumulator: Accumulator, debug: bool) -> None:
        super().__init__()
        self.chip, self.accumulator, self.debug = chip, accumulator, debug
        self._handles: dict[int, Handle] = {}

    def adopt(self, handle: Handle) -> None:
        """A handle of this context was created: it holds the context until it is freed."""
        with LOCK:
            self._handles[handle.value] = handle
            self.hold()

    def forget(self, handle: Handle) -> None:
        """A handle of this context was freed."""
        with LOCK:
            self._handles.pop(handle.value, None)
        self.drop()

    def unreleased(self) -> list[Handle]:
        """Memory and command lists that the caller has not released, oldest first."""
        with LOCK:
            return [handle for handle in self._handles.values() if handle.users]


@DRIVER.checked
def dmp_dv_context_create(
    chip: DvChip = CHIP, *, accumulator: Accumulator = Accumulator.EXACT, debug: bool | None = None
) -> DvContext:
    """Open a simulated device. Thread-safe.

    Args:
        chip: facts of the device to simulate; C has no parameters.
        accumulator: how the device adds products.
        debug: report handles that are still in use when the context is released to the log "bmcompiler.runtime.dmp_dv";
            None = when the environment variable DMP_DV_DEBUG is set and not 0.
    """
    if debug is None:
        debug = os.environ.get(DEBUG_VARIABLE, "0") not in ("", "0")
    return DvContext(chip, accumulator, debug)


@DRIVER.checked
def dmp_dv_context_release(ctx: DvContext | None) -> int:
    """Give back a reference; the counter after the call, 0 for NULL. Memory and command lists keep a context alive."""
    left = release(ctx, DvContext, "ctx")
    if ctx is not None and ctx.debug and not ctx.users:
        for handle in ctx.unreleased():
            log.warning("leaked: %s", handle.describe())
    return left


@DRIVER.checked
def dmp_dv_context_retain(ctx: DvContext | None) -> int:
    """Take a reference; the counter after the call, 0 for NULL."""
    return retain(ctx, DvContext, "ctx")


@DRIVER.checked
def dmp_dv_context_get_info_string(ctx: DvContext) -> str | None:
    """Facts of the device in words; None for NULL."""
    chip = ctx.chip
    return (
        f"DMP DV (simulated): ub_size={chip.ub_size} max_kernel_size={chip.max_kernel_size} conv_freq={chip.conv_freq} "
        f"fc_freq={chip.fc_freq} max_fc_vector_size={chip.max_fc_vector_size} mac_num={chip.mac_num} "
        f"svn_version={chip.svn_version}"
    )


@DRIVER.checked
def dmp_dv_context_get_info(ctx: DvContext, info: Buffer | None) -> int:
    """Fill a `structs.INFO_V0` (any writable buffer): `version` always, the rest when `size` is enough.

    Returns 0; EINVAL for NULL; -1 when `size` is below 8.
    """
    data = writable(info)
    if data is None or data.size < INFO.itemsize:
        return refuse(errno.EINVAL, "info is NULL, read-only or below 8 bytes")
    header = data[: INFO.itemsize].view(INFO)
    size = int(header["size"][0])
    if size < INFO.itemsize:
        return refuse(-1, f"info.size {size} is below {INFO.itemsize}")
    header["version"] = 0
    if min(size, data.size) >= INFO_V0.itemsize:
        fields = data[: INFO_V0.itemsize].view(INFO_V0)
        for name in ("ub_size", "max_kernel_size", "conv_freq", "fc_freq", "max_fc_vector_size"):
            fields[name] = getattr(ctx.chip, name)
        fields["rsvd"] = 0
    return 0


@DRIVER.checked
def dmp_dv_device_exists(ctx: DvContext, dev_type_id: int) -> int:
    """1 if the device has a block, 0 if not, -1 for NULL and for types the driver cannot tell of."""
    if dev_type_id == DeviceType.CONV:
        return int(ctx.chip.conv_freq != 0)
    if dev_type_id == DeviceType.FC:
        return int(ctx.chip.fc_freq != 0)
    if dev_type_id == DeviceType.IPU:
        return 0
    report(f"device type {dev_type_id} cannot be asked for")
    return -1


@DRIVER.checked
def dmp_dv_fpga_device_exists(ctx: DvContext, dev_type_id: int) -> int:
    """The name that the wiki has for `dmp_dv_device_exists`."""
    return dmp_dv_device_exists(ctx, dev_type_id)


def new_info() -> np.ndarray:
    """A `structs.INFO_V0` with its size filled in, to be passed to `dmp_dv_context_get_info`."""
    info = np.zeros(1, INFO_V0)
    info["header"]["size"] = INFO_V0.itemsize
    return info
