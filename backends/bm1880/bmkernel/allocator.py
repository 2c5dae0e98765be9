"""Stack allocation of local memory, whole or per bank (bm1880.md 9)."""

from __future__ import annotations

from bmcompiler.backends.bm1880.bmkernel.tensors import lane_bytes, shape_t, tensor_lmem
from bmcompiler.backends.bm1880.chip import CHIP, align_up
from bmcompiler.errors import EncodingError


class LocalStack:
    """A bump allocator over bytes [start, end) of every lane; frees are last-in first-out."""

    def __init__(self, start: int, end: int, bank_id: int = -1) -> None:
        self._top, self._end, self._bank_id = start, end, bank_id
        self._live: list[tuple[tensor_lmem, int]] = []

    def alloc(self, shape: shape_t, fmt: int, aligned: bool) -> tensor_lmem | None:
        """A tensor on top of the stack (aligned ones at the next multiple of 16), or None when it does not fit."""
        address = align_up(self._top, CHIP.alignment) if aligned else self._top
        end = address + lane_bytes(shape, aligned)
        if end > self._end:
            return None
        tensor = tensor_lmem(address, shape, fmt, aligned, bank_id=self._bank_id, owner=self)
        self._live.append((tensor, self._top))
        self._top = end
        return tensor

    @property
    def live(self) -> int:
        """Tensors allocated and not freed."""
        return len(self._live)

    def free(self, tensor: tensor_lmem) -> None:
        """Pop the tensor.

        Raises:
            EncodingError: when it is not the last one allocated.
        """
        if self._live[-1][0] is not tensor:
            raise EncodingError(
                f"bmk1880_tl_free: tensor {tensor.shape} at 0x{tensor.address:x} is not the last one allocated, "
                "local memory is freed last-in first-out"
            )
        self._top = self._live.pop()[1]
        tensor.free()

    def close(self) -> None:
        """Free all that is allocated, the latest first."""
        while self._live:
            self.free(self._live[-1][0])


class LocalMemory:
    """The allocator of a context: one stack for the whole memory and one per bank, independent of each other."""

    def __init__(self) -> None:
        size = CHIP.lmem_bank_size
        self._whole = LocalStack(0, CHIP.lmem_size)
        self._banks = [LocalStack(k * size, (k + 1) * size, k) for k in range(CHIP.lmem_banks)]

    def stack(self, bank_id: int | None) -> LocalStack:
        """The stack of a bank, or of the whole memory for None.

        Raises:
            EncodingError: for a bank that does not exist.
        """
        if bank_id is None:
            return self._whole
        if not 0 <= bank_id < CHIP.lmem_banks:
            raise EncodingError(
                f"bmk1880_tl_alloc_bank: bank {bank_id} does not exist, banks are 0..{CHIP.lmem_banks - 1}"
            )
        return self._banks[bank_id]

    @property
    def live(self) -> int:
        """Tensors allocated and not freed, in all stacks."""
        return sum(stack.live for stack in (self._whole, *self._banks))

    def free(self, tensor: tensor_lmem) -> None:
        """Give an allocated tensor back; of a descriptor made by prealloc only the handle ends.

        Raises:
            EncodingError: when it is not the last one allocated, or of another context.
        """
        stack = next((stack for stack in (self._whole, *self._banks) if stack is tensor.owner), None)
        if stack is not None:
            stack.free(tensor)
        elif tensor.owner is None:
            tensor.free()
        else:
            raise EncodingError("bmk1880_tl_free: tlp was allocated by another context")

    def close(self) -> None:
        """Free all that is allocated, the latest first."""
        for stack in (self._whole, *self._banks):
            stack.close()
