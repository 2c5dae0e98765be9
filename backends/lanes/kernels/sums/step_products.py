"""What a step of a recurrent layer multiplies: its state by weights that stay in local memory.

Values of a gate lie in L lanes, J = H / L neighbours in each: value l * J + j in lane l. Forms say how operands lie.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, NamedTuple

from bmcompiler.backends.lanes.build import LaneBuild
from bmcompiler.backends.lanes.facts import LaneFacts, Shape, Strides
from bmcompiler.backends.lanes.machine import LaneMachine
from bmcompiler.backends.lanes.matrices import Matrix
from bmcompiler.backends.lanes.operands import Words
from bmcompiler.numeric.arrays import Array


class Sizes(NamedTuple):
    """steps T, images N, lanes L, neighbours J."""

    steps: int
    images: int
    lanes: int
    run: int

    def part(self, gates: int = 1) -> Shape:
        """So many gates as feature maps of words."""
        return gates, self.lanes, self.images, self.run

    def interleaved(self, gates: int) -> Shape:
        """The inputs of all steps as they are loaded: the gates of a value lie next to each other."""
        return self.steps, self.lanes, self.images, self.run * gates


class Planes(NamedTuple):
    """Gates of a value in local memory, words of fp32; strides (gate, 0, image, neighbour) or None: `Sizes.part`."""

    address: int
    strides: Strides | None
    gate: int


@dataclass(frozen=True)
class StepProduct(ABC):
    """The product of a step in one form: `gates` gates of weights by the state."""

    machine: LaneMachine
    size: Sizes
    gates: int
    dtype: str

    @property
    def chip(self) -> LaneFacts:
        """Facts of the chip."""
        return self.machine.chip

    @property
    @abstractmethod
    def fed(self) -> tuple[Shape, Strides]:
        """The state as an operand: its shape, and where its (0, 0, image, neighbour) lies."""

    @property
    @abstractmethod
    def made(self) -> tuple[Shape, Strides]:
        """The product: its shape in fp32, and where its (gate, 0, image, neighbour) lies."""

    @property
    @abstractmethod
    def weights(self) -> Shape:
        """The weights as they lie; in global memory they are dense."""

    @abstractmethod
    def packed(self, weight: Array) -> Array:
        """Weights (gates * H, H) as they are stored, of `weights`' shape."""

    @abstractmethod
    def cycles(self) -> int:
        """Of the commands."""

    @abstractmethod
    def emit(self, build: Any, made: int, weights: int, fed: int) -> None:
        """The commands; addresses of the three."""

    @abstractmethod
    def sums(self, packed: Array, state: Array) -> Array:
        """(gates, L, N, J) of fp32 of a state (L, N, J) of the type of the weights."""


class MatrixProduct(StepProduct):
    """fp32 by products of matrices in sections of columns, a lane each: states lie as they are."""

    @property
    def fed(self) -> tuple[Shape, Strides]:
        shape = (self.size.images, self.size.lanes, 1, self.size.run)
        return shape, (0, 0, self.chip.aligned_strides(shape)[0], 1)

    @property
    def made(self) -> tuple[Shape, Strides]:
        shape = (self.size.images, self.size.lanes, 1, self.gates * self.size.run)
        return shape, (self.size.run, 0, self.chip.aligned_strides(shape)[0], 1)

    @property
    def weights(self) -> Shape:
        return self.depth, self.size.lanes, 1, self.gates * self.size.run

    @property
    def depth(self) -> int:
        """H."""
        return self.size.lanes * self.size.run

    def packed(self, weight: Array) -> Array:
        size = self.size
        return weight.reshape(self.gates, size.lanes, size.run, -1).transpose(3, 1, 0, 2).reshape(self.weights)

    def cycles(self) -> int:
        return self.machine.matrix_cycles.matrix(self.made[0], self.depth)

    def emit(self, build: LaneBuild, made: int, weights: int, fed: int) -> None:
        columns = self.gates * self.depth
        left, right = Words(fed, self.fed[0]), Words(weights, self.weights)
        target = Matrix(self.size.images, columns, Words(made, self.made[0]))
        build.multiply(
            target, Matrix(self.size.images, self.depth, left), Matrix(self.depth, columns, right), None, add=False
        )

    def sums(self, packed: Array, state: Array) -> Array:
        size = self.size
        left = state.transpose(1, 0, 2).reshape(size.images, -1)
        out = self.machine.arithmetic.product(left, packed.reshape(self.depth, -1), None, None)
        return out.reshape(size.images, size.lanes, self.gates, size.run).transpose(2, 1, 0, 3)
