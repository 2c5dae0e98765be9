"""The raw commands of device subnets in a model file, which lie one after the other, each with its size in front."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from bmcompiler.backends.dv.driver.checks_other import check_header
from bmcompiler.backends.dv.driver.structs import CMDRAW
from bmcompiler.bmodel.bm168x import TpuSubnet
from bmcompiler.errors import FileFormatError


def subnet_commands(subnet: TpuSubnet) -> Iterator[bytes]:
    """Commands of a subnet in order. Raises FileFormatError where the bytes are no commands."""
    for group in subnet.source.get("cmd_group", []):
        data = bytes(group.get("binary_bdc", b""))
        while data:
            refusal = check_header(data)
            if refusal:
                raise FileFormatError(f"subnet {subnet.id} holds something else than commands: {refusal.text}")
            size = int(np.frombuffer(data, CMDRAW, 1)[0]["size"])
            yield data[:size]
            data = data[size:]
