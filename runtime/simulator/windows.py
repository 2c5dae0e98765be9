"""Geometry of commands that slide a window over a feature map, from their fields; common to chips with lanes."""

from __future__ import annotations

from bmcompiler.backends.lanes.windows import Window
from bmcompiler.errors import SimulatorError
from bmcompiler.instructions.isa import Fields


def window_of(f: Fields, *, counted: bool = True) -> Window:
    """Geometry from the fields.

    Args:
        counted: whether the engine counts windows by itself: a result of fewer is none, then (vendor's C models).

    Raises:
        SimulatorError: the result reads beyond the padded input, or has not all windows.
    """
    window = Window(
        (f["opd1_h"], f["opd1_w"]),
        (f["res_op_y_str"], f["res_op_x_str"]),
        (f["opd1_y_ins0"] + 1, f["opd1_x_ins0"] + 1),
        (f["opd0_y_ins0"] + 1, f["opd0_x_ins0"] + 1),
        (f["opd0_up_pad"], f["opd0_lf_pad"]),
        (f["opd0_dn_pad"], f["opd0_rt_pad"]),
        (f["res0_h"], f["res0_w"]),
    )
    if min(*window.kernel, *window.stride) < 1:
        raise SimulatorError(f"kernel {window.kernel} and stride {window.stride} must be positive")
    have = window.padded((f["opd0_h"], f["opd0_w"]))
    if any(need > size for need, size in zip(window.reach, have)):
        raise SimulatorError(f"result {window.out} reads {window.reach} of a padded input of {have} pixels")
    if counted and any(size - need >= step for need, size, step in zip(window.reach, have, window.stride)):
        raise SimulatorError(
            f"result {window.out} is less than what windows give that step by {window.stride} over {have} pixels"
        )
    return window
