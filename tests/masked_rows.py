"""Cases of onnx that find rows which are masked wholly by a maximum of -inf."""

LOWEST_MAXIMA = {
    f"test_attention_23_{name}{form}"
    for name in ("boolmask_fullymasked_row_nan_robustness", "fullymasked_qk_matmul_output_mode3_zero")
    for form in ("", "_expanded")
}
"""Maxima over windows begin with the lowest number on the BM1684 and BM1684X: that of -inf alone is not -inf there."""
