"""The BM1880 kernel API: the functions of the BMNNSDK's BMKernel Library with the same names, in Python form.

    ctx = bmk1880_register()
    x = bmk1880_tl_alloc(ctx, shape_t4(1, 3, 28, 28), FMT_I8, CTRL_AL)
    bmk1880_gdma_load(ctx, x, 0, CTRL_NEURON)
    bmk1880_tpu_relu(ctx, bmk1880_relu_param_t(x, x))
    bmk1880_gdma_store(ctx, x, 4096, CTRL_NEURON)
    cmdbuf = bmk1880_acquire_cmdbuf(ctx)

Computation calls return a handle for `bmk1880_add_dependency`. Differences from C: acquire returns the bytes, cleanup
and free need no memory management. A broken constraint, None, a wrong or freed object raise `EncodingError` instead of
aborting. `tl_alloc` returns None when a tensor does not fit. `bmk1880_cpu_op` adds CPU records, which the vendor's
chapter does not name.
"""

from types import ModuleType as _Module

from bmcompiler.backends.bm1880.bmkernel.arithmetic import (
    bmk1880_add_const_param_t,
    bmk1880_add_param_t,
    bmk1880_arith_shift_param_t,
    bmk1880_mac_const_param_t,
    bmk1880_mac_param_t,
    bmk1880_mul_const_param_t,
    bmk1880_mul_param_t,
    bmk1880_sub_param_t,
    bmk1880_tpu_add,
    bmk1880_tpu_add_const,
    bmk1880_tpu_arith_shift,
    bmk1880_tpu_mac,
    bmk1880_tpu_mac_const,
    bmk1880_tpu_mul,
    bmk1880_tpu_mul_const,
    bmk1880_tpu_sub,
)
from bmcompiler.backends.bm1880.bmkernel.context import Bmk1880Context, bmk1880_chip_info_t, bmk1880_info_t
from bmcompiler.backends.bm1880.bmkernel.gdma import (
    bmk1880_gdma_copy_gmem,
    bmk1880_gdma_copy_lmem,
    bmk1880_gdma_load,
    bmk1880_gdma_load_stride,
    bmk1880_gdma_lrn_shift,
    bmk1880_gdma_store,
    bmk1880_gdma_store_stride,
    global_tensor,
)
from bmcompiler.backends.bm1880.bmkernel.logic import (
    bmk1880_and_int8_param_t,
    bmk1880_and_int16_param_t,
    bmk1880_max_const_param_t,
    bmk1880_max_param_t,
    bmk1880_min_const_param_t,
    bmk1880_min_param_t,
    bmk1880_or_int8_param_t,
    bmk1880_or_int16_param_t,
    bmk1880_tpu_and_int8,
    bmk1880_tpu_and_int16,
    bmk1880_tpu_max,
    bmk1880_tpu_max_const,
    bmk1880_tpu_min,
    bmk1880_tpu_min_const,
    bmk1880_tpu_or_int8,
    bmk1880_tpu_or_int16,
    bmk1880_tpu_xor_int8,
    bmk1880_tpu_xor_int16,
    bmk1880_xor_int8_param_t,
    bmk1880_xor_int16_param_t,
)
from bmcompiler.backends.bm1880.bmkernel.matrix import (
    bmk1880_matrix_mac_2_param_t,
    bmk1880_matrix_mac_param_t,
    bmk1880_tpu_matrix_mac,
    bmk1880_tpu_matrix_mac_2,
)
from bmcompiler.backends.bm1880.bmkernel.sync import Op
from bmcompiler.backends.bm1880.bmkernel.system import (
    bmk1880_acquire_cmdbuf,
    bmk1880_add_dependency,
    bmk1880_chip_info,
    bmk1880_cleanup,
    bmk1880_cpu_op,
    bmk1880_create_streams,
    bmk1880_destroy_streams,
    bmk1880_parallel_disable,
    bmk1880_parallel_enable,
    bmk1880_register,
    bmk1880_reset,
    bmk1880_set_stream,
    bmk1880_tg_shape_to_size,
    bmk1880_tl_alloc,
    bmk1880_tl_alloc_bank,
    bmk1880_tl_free,
    bmk1880_tl_prealloc,
    bmk1880_tl_prealloc_align,
    bmk1880_tl_shape_to_nchw,
    bmk1880_tl_shape_to_size,
    bmk1880_tl_size,
    shape_equal,
)
from bmcompiler.backends.bm1880.bmkernel.tensorops import (
    bmk1880_copy_param_t,
    bmk1880_copy_with_stride_param_t,
    bmk1880_lut_param_t,
    bmk1880_mdsum_param_t,
    bmk1880_relu_param_t,
    bmk1880_tpu_copy,
    bmk1880_tpu_copy_with_stride,
    bmk1880_tpu_lut,
    bmk1880_tpu_mdsum,
    bmk1880_tpu_relu,
)
from bmcompiler.backends.bm1880.bmkernel.tensors import (
    shape_t,
    shape_t1,
    shape_t2,
    shape_t3,
    shape_t4,
    stride_t,
    stride_t2,
    stride_t4,
    tensor_gmem,
    tensor_lmem,
)
from bmcompiler.backends.bm1880.bmkernel.window import (
    bmk1880_avg_pooling_param_t,
    bmk1880_conv_param_t,
    bmk1880_depthwise_param_t,
    bmk1880_max_pooling_param_t,
    bmk1880_tpu_avg_pooling,
    bmk1880_tpu_conv,
    bmk1880_tpu_depthwise,
    bmk1880_tpu_max_pooling,
    bmk1880_tpu_winograd,
    bmk1880_winograd_param_t,
)
from bmcompiler.backends.bm1880.isa import (
    CTRL_ADDR_ALIGN,
    CTRL_AL,
    CTRL_BN,
    CTRL_KFLIP,
    CTRL_NEURON,
    CTRL_NULL,
    CTRL_RA,
    CTRL_RELU,
    CTRL_TP,
    CTRL_WEIGHT,
    CTRL_WINOGRAD,
    FMT_I8,
    FMT_U8,
    WINOGRAD_SCALE_SHIFT,
)

__all__ = [name for name, value in sorted(globals().items()) if name[0] != "_" and not isinstance(value, _Module)]
