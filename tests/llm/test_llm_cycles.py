"""What layers take on the board, by the cycle model."""

from __future__ import annotations

import numpy as np
import pytest
from llm.model_folders import small_config, small_tensors, write_folder

from bmcompiler import compile_module
from bmcompiler.analysis.estimate import estimate as timing_of
from bmcompiler.analysis.timing_profile import named_profiles
from bmcompiler.defaults import LLM_TARGET
from bmcompiler.ir import TensorType
from bmcompiler.llm.estimate import estimate
from bmcompiler.llm.groups import BundleOptions
from bmcompiler.llm.model import LanguageModel, open_model
from bmcompiler.llm.planned import net_cycles
from bmcompiler.llm.precision import Precision
from bmcompiler.ops.builder import Builder


@pytest.fixture(scope="module")
def qwen3(tmp_path_factory: pytest.TempPathFactory) -> LanguageModel:
    """Layers nearly as large as those of Qwen3-0.6B."""
    sizes = {"hidden_size": 1024, "intermediate_size": 2048, "num_attention_heads": 16, "num_key_value_heads": 8}
    types = {"model_type": "qwen3", "head_dim": 128, "torch_dtype": "float16", "max_position_embeddings": 2048}
    config = small_config(**sizes, **types)
    folder = tmp_path_factory.mktemp("qwen3")
    return open_model(write_folder(folder, config, small_tensors(config, np.float16)))


@pytest.mark.parametrize("length", [512, 2048])
def test_a_token_takes_what_its_weights_and_its_cache_take_over_the_bus(qwen3: LanguageModel, length: int) -> None:
    """Values arrive while queries and keys are made, weights while scores and chances are; 1.06 and 1.14 without."""
    options = BundleOptions(Precision("f16", 4), length, check="never")
    read = estimate(qwen3.architecture, options.precision, length)
    bound = (read.weights + read.cache) / 2 / named_profiles(LLM_TARGET)["vendor"].strided_bytes_per_cycle
    assert bound < net_cycles(qwen3, "block_cache_0", options) < 1.03 * bound


def test_the_last_part_of_a_large_matrix_is_small() -> None:
    """Behind its load the product of one row goes on alone: 5.6 % of all with parts as large as local memory takes."""
    b = Builder.new("x")
    weight = b.weight(np.zeros((8960, 1536), np.float16), "w")
    out = b.matmul(b.input("x", TensorType((1, 1536), "f16")), weight, transpose_right=True)
    result = compile_module(b.outputs([out], ["y"]), target=LLM_TARGET, quantize="f16", check="never")
    vendor = named_profiles(LLM_TARGET)["vendor"]
    timing = timing_of(result, vendor)
    assert timing is not None and timing.cycles < 1.02 * weight.type.nbytes / vendor.bus_bytes_per_cycle
