"""What is said of results between two commands: who reads one is known to the byte, of all samples."""

from __future__ import annotations

import pytest

from bmcompiler.backends.dv.breaks import breaks
from bmcompiler.backends.dv.driver.commands import Buf, ConvCommand, FcCommand, Run
from bmcompiler.backends.dv.driver.structs import ConvEnable

COPY = Run(m=5, conv_enable=ConvEnable.CONV)
PART, HOST, FLAT = "the result is a part of what is read", "the host reads the result", "an FC command reads the result"
AT = 1 << 16


def conv(samples: int = 1, **buffers: Buf) -> ConvCommand:
    """Of samples of 3 x 4 pixels, 5 channels to 5."""
    return ConvCommand(3, 4, 5, (COPY,), input_circular_offset=samples if samples > 1 else 0, **buffers)


@pytest.mark.parametrize("samples", [1, 3])
def test_a_result_is_read_from_its_first_byte_to_its_last(samples: int) -> None:
    nbytes = 2 * samples * 3 * 4 * 5
    written = conv(samples, output_buf=Buf(1, AT))
    read = {-nbytes: HOST, 2 - nbytes: PART, nbytes - 2: PART, nbytes: HOST}
    for offset, why in read.items():
        assert breaks([written, conv(samples, input_buf=Buf(1, AT + offset))])[0] == why, offset
    assert breaks([written, conv(samples, input_buf=Buf(2, AT))])[0] == HOST


def test_a_vector_is_read_from_its_first_byte_to_its_last() -> None:
    written = conv(output_buf=Buf(1, AT))
    for offset, why in {-200: HOST, -198: FLAT, 118: FLAT, 120: HOST}.items():
        assert breaks([written, FcCommand(100, 7, input_buf=Buf(1, AT + offset))])[0] == why, offset


def test_what_is_written_again_has_no_later_readers() -> None:
    written, reader = conv(output_buf=Buf(1, AT)), conv(input_buf=Buf(1, AT))
    for offset, why in {-14: HOST, -16: ""}.items():  # the last of 8 results lies in its first byte, or before it
        again = FcCommand(100, 8, input_buf=Buf(2, 0), output_buf=Buf(1, AT + offset))
        assert breaks([written, again, reader])[0] == why


@pytest.mark.parametrize(
    ("width", "between", "end", "why"),
    [
        (64, 8, 8, ""),
        (64, 8, 512, ""),
        (512, 8, 1, "the runs need 1049088 bytes of a unified buffer of 655360 bytes"),
        (128, 64, 8, "the runs need 1180160 bytes of a unified buffer of 655360 bytes"),
    ],
)
def test_what_lies_between_fits_the_unified_buffer_and_the_last_result_need_not(
    width: int, between: int, end: int, why: str
) -> None:
    written, reader = (
        ConvCommand(width, 64, channels, (Run(m=m, conv_enable=ConvEnable.CONV),), input_buf=at, output_buf=to)
        for channels, m, at, to in ((8, between, Buf(2, 0), Buf(1, AT)), (between, end, Buf(1, AT), Buf(3, 0)))
    )
    assert breaks([written, reader])[0] == why
