"""Matrices of fp32 in local memory: rows of sections, a lane each (bm1684.md 4.5, bm1684x-cube.md 3)."""

from __future__ import annotations

from typing import NamedTuple

from bmcompiler.backends.lanes.facts import LaneFacts, Shape
from bmcompiler.backends.lanes.operands import Words


class Matrix(NamedTuple):
    """A matrix in local memory: its size, and the tensor (rows, sections, 1, width) that holds it."""

    rows: int
    columns: int
    words: Words


def row_columns(chip: LaneFacts) -> int:
    """Columns that fill one row of sections of all lanes, each as wide as a step of the execution units."""
    return chip.execution_units * chip.lanes


def usual_width(chip: LaneFacts, columns: int) -> int:
    """Columns of a section: half sections where lanes are left."""
    section = chip.execution_units
    return min(columns, section if columns > row_columns(chip) // 2 else section // 2)


def matrix_shape(chip: LaneFacts, rows: int, columns: int, width: int = 0) -> Shape:
    """The tensor (rows, sections, 1, width) that a matrix is stored as; width: 0 = the usual one."""
    width = min(width, columns) or usual_width(chip, columns)
    return rows, -(-columns // width), 1, width


def matrix_bytes(chip: LaneFacts, rows: int, columns: int, width: int = 0) -> int:
    """Bytes per lane of a matrix."""
    return chip.aligned_bytes(matrix_shape(chip, rows, columns, width))


def matrix_at(chip: LaneFacts, address: int, rows: int, columns: int, width: int = 0) -> Matrix:
    """The matrix of so many rows and columns at an address."""
    return Matrix(rows, columns, Words(address, matrix_shape(chip, rows, columns, width)))
