"""Facts of a DV device that differ from board to board (dv.md 4.1, 6)."""

from __future__ import annotations

from dataclasses import dataclass

SVN_CURRENT = 93
"""Revision from which transposed convolution, windows that are not square and wide dilated pads work."""
_SVN_DILATED_PADS_ZIA_C2 = 83


@dataclass(frozen=True)
class DvChip:
    """What the driver reads from the system; the defaults are a DV700 as the vendor's converter assumes it.

    Args:
        ub_size: unified buffer in bytes.
        max_kernel_size: largest kernel width and height.
        conv_freq: clock of the CONV block in MHz; 0 = the block does not exist.
        fc_freq: clock of the separate FC block in MHz; 0 = FC commands run on CONV.
        max_fc_vector_size: longest FC input and output in elements.
        mac_num: multipliers of the CONV block.
        svn_version: revision of the device logic.
        zia_c2: the small 32-bit board, whose revisions are counted differently.
    """

    ub_size: int = 640 << 10
    max_kernel_size: int = 7
    conv_freq: int = 333
    fc_freq: int = 0
    max_fc_vector_size: int = 16384
    mac_num: int = 576
    svn_version: int = SVN_CURRENT
    zia_c2: bool = False

    @property
    def is_current(self) -> bool:
        """Transposed convolution and pooling windows that are not square are available."""
        return self.svn_version >= SVN_CURRENT

    @property
    def has_wide_dilated_pads(self) -> bool:
        """Pads of a dilated convolution may be larger than the input."""
        return self.svn_version >= (_SVN_DILATED_PADS_ZIA_C2 if self.zia_c2 else SVN_CURRENT)


CHIP = DvChip()
