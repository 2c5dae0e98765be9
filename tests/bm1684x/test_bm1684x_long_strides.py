"""Images of bytes that lie farther apart in a lane than the 16 bits of a stride say."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

import bmcompiler


@pytest.mark.parametrize("width", [73, 74, 96])  # 224 x 296 is the first beyond 65535
def test_pixels_of_several_images_are_shuffled_one_by_one(width: int) -> None:
    rng = np.random.default_rng(width)
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["c"]),
        helper.make_node("DepthToSpace", ["c"], ["d"], blocksize=4),
        helper.make_node("Relu", ["d"], ["y"]),
    ]
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, (2, 4, 56, width))
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, (2, 1, 224, 4 * width))
    weights = [numpy_helper.from_array(rng.standard_normal((16, 4, 1, 1)).astype(np.float32), "w")]
    model = helper.make_model(
        helper.make_graph(nodes, "net", [x], [y], weights), opset_imports=[helper.make_opsetid("", 13)], ir_version=8
    )
    data = rng.standard_normal((2, 4, 56, width)).astype(np.float32)
    result = bmcompiler.compile(model, target="bm1684x", quantize="int8", data=data, check="always")
    assert result.compare(data)["y"].error < 0.05
