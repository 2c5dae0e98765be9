"""How the libraries are called by the walk of c_walk.py: right values, wrong ones, handles, what releases them."""

from __future__ import annotations

from c_walk import Walk

from bmcompiler.backends.bm1684x.tpukernel import TABLE
from bmcompiler.bmnet import c_library
from bmcompiler.runtime.capi import bmkernel, bmlib, bmrt, bmruntime, dmpdv, tpukernel

STRANGE = "0", "7", "(uintptr_t)scratch"
"""What nobody gave out as a handle."""

RUNTIME = Walk(
    bmruntime.LIBRARY,
    """
    bmnet_info_t info = {1, (uint8_t *)scratch, 64, NULL, 0, 128, 64, 64, 64};
    if (bm_init(0, &ctx) || bm_init(1, &exited)) return 2;
    dev = bm_get_device(ctx);
    mem = bmmem_device_alloc_raw(ctx, 64);
    gone = bmmem_device_alloc_raw(ctx, 64);
    if (bmnet_register(ctx, &info, &net) || bmnet_register(ctx, &info, &cleaned)) return 3;
    if (bm_device_open(6, &closed)) return 4;
    bmmem_device_free(ctx, gone);
    bmnet_cleanup(cleaned);
    bm_device_close(closed);
    bm_exit(exited);
    """,
    {
        "bmctx_t": "ctx", "bmdev_t": "dev", "bmmem_device_t": "mem", "bmnet_t": "net", "bmshape_t *": "&shape",
        "shape_t": "shape_t4(1, 64, 1, 1)", "const char *": '"absent.bmodel"', "uint8_t *": "(uint8_t *)scratch",
        "const uint8_t *": "(uint8_t *)scratch",
    },
    {
        "bmctx_t": (*STRANGE, "mem", "exited"),
        "bmdev_t": (*STRANGE, "ctx", "closed"),
        "bmmem_device_t": (*STRANGE, "net", "gone"),
        "bmnet_t": (*STRANGE, "mem", "cleaned"),
    },
    beside={
        "index": ("-1", "99"), "neuron_offset": ("1000",), "neuron_size": ("-1",), "seq_no": ("9",), "num": ("0", "2"),
        "batch_size": ("0", "3"), "output_offset": ("1000",),
    },
    without=frozenset({"bm_enum_devices", "bm_device_query", "bm_device_config"}),  # NULL says nothing to them
    handles=("bmctx_t", "bmdev_t", "bmmem_device_t", "bmnet_t"),
    end=("bmnet_cleanup(net)", "bmmem_device_free(ctx, mem)", "bm_exit(ctx)"),
    globals="static bmctx_t ctx, exited; static bmdev_t dev, closed; static bmmem_device_t mem, gone;"
    "static bmnet_t net, cleaned; static bmshape_t shape = {BM_FMT_INT8, 2, {1, 64}};",
)  # fmt: skip
KERNEL = Walk(
    bmkernel.LIBRARY,
    """
    ctx = bmk1880_register(NULL); cleaned = bmk1880_register(NULL);
    t = bmk1880_tl_alloc(ctx, shape_t4(1, 32, 4, 4), FMT_I8, CTRL_AL);
    gone = bmk1880_tl_alloc(ctx, shape_t4(1, 32, 4, 4), FMT_I8, CTRL_AL);
    lost = bmk1880_tl_alloc(cleaned, shape_t4(1, 32, 4, 4), FMT_I8, CTRL_AL);
    bmk1880_gdma_load(ctx, t, 0, CTRL_NEURON);
    op = bmk1880_gdma_store(ctx, t, 0, CTRL_NEURON);
    far = bmk1880_gdma_load(cleaned, lost, 0, CTRL_NEURON);
    bmk1880_tl_free(ctx, gone); bmk1880_cleanup(cleaned);
    """,
    {
        "ctx_t": "ctx", "reader_t": "ctx", "op_t": "op", "tensor_lmem *": "t", "shape_t": "shape_t4(1, 32, 4, 4)",
        "stride_t": "stride_t4(512, 16, 4, 1)", "fmt_t": "FMT_I8", "ctrl_t": "CTRL_NULL",
    },
    {
        "ctx_t": (*STRANGE, "t", "cleaned"),
        "reader_t": (*STRANGE, "t", "cleaned"),
        "op_t": (*STRANGE, "ctx", "far"),
        "tensor_lmem *": (*STRANGE, "ctx", "gone"),
    },
    beside={"fmt": ("99",)},
    without=frozenset({"bmk1880_register"}),
    handles=("ctx_t", "reader_t"),
    end=("bmk1880_tl_free(ctx, t)", "bmk1880_cleanup(ctx)"),
    globals="static void *ctx, *cleaned, *op, *far; static tensor_lmem *t, *gone, *lost;",
)  # fmt: skip
DRIVER = Walk(
    dmpdv.LIBRARY,
    """
    ctx = dmp_dv_context_create(); left = dmp_dv_context_create();
    mem = dmp_dv_mem_alloc(ctx, 64); gone = dmp_dv_mem_alloc(left, 64);
    list = dmp_dv_cmdlist_create(ctx); over = dmp_dv_cmdlist_create(left);
    info.header.size = sizeof info; dmp_dv_mem_map(mem);
    dmp_dv_cmdlist_release(over); dmp_dv_mem_release(gone); dmp_dv_context_release(left);
    """,
    {
        "dmp_dv_context": "ctx", "dmp_dv_mem": "mem", "dmp_dv_cmdlist": "list",
        "struct dmp_dv_info *": "(struct dmp_dv_info *)&info", "const uint16_t *": "(const uint16_t *)scratch",
        "const void *": "scratch", "pointer_t": "NULL", "const char *": '""',
    },
    {
        "dmp_dv_context": ("7", "mem", "left"),
        "dmp_dv_mem": ("7", "list", "gone"),
        "dmp_dv_cmdlist": ("7", "ctx", "over"),
    },
    sentence="dmp_dv_get_last_error_message()",
    reset='dmp_dv_set_last_error_message("");',
    without=frozenset({"dmp_dv_get_last_error_message"}),
    handles=("dmp_dv_context", "dmp_dv_mem", "dmp_dv_cmdlist"),
    lenient=frozenset(f"dmp_dv_{one}_{two}" for one in ("context", "mem", "cmdlist") for two in ("retain", "release")),
    end=(
        "dmp_dv_cmdlist_release(list)", "dmp_dv_mem_unmap(mem)", "dmp_dv_mem_release(mem)",
        "dmp_dv_context_release(ctx)",
    ),
    globals="static dmp_dv_context ctx, left; static dmp_dv_mem mem, gone; static dmp_dv_cmdlist list, over;"
    "static struct dmp_dv_info_v0 info;",
)  # fmt: skip
_CARD = """
    if (bm_dev_request(&handle, 0) || bm_dev_request(&freed, 1)) return 2;
    if (bm_malloc_device_byte(handle, &mem, 64) || bm_malloc_device_byte(handle, &gone, 64)) return 3;
    bm_free_device(handle, gone);
"""
_CARD_GLOBALS = "static bm_handle_t handle, freed; static bm_device_mem_t mem, gone;"
_HANDLES = {"bm_handle_t": (*STRANGE, "freed")}
CARDS = Walk(
    bmlib.LIBRARY,
    _CARD + " bm_dev_free(freed); bm_set_device_mem_u64(&u64_mem, 64, bm_mem_get_device_addr(mem));"
    "sg_set_device_mem(&sg_mem, 64, bm_mem_get_device_addr(mem)); sg_gone = sg_mem; u64_gone = u64_mem;"
    "sg_mem_set_device_addr(&sg_gone, bm_mem_get_device_addr(gone));"
    "bm_mem_set_device_addr_u64(&u64_gone, bm_mem_get_device_addr(gone));",
    {
        "bm_handle_t": "handle", "bm_device_mem_t": "mem", "bm_device_mem_t *": "&mem", "const char *": '"absent"',
        "void *": "scratch", "const void *": "scratch", "address_t": "scratch", "size_t": "8", "char *": "scratch",
        "cores_t": "&core", "launches_t": "&launch", "pairs_t": "scratch, 64ull", "argc": "2",
        "sg_device_mem_t": "sg_mem", "sg_device_mem_t *": "&sg_mem", "bm_device_mem_u64_t": "u64_mem",
        "bm_device_mem_u64_t *": "&u64_mem", "bmlib_api_dbg_callback": "NULL", "words_t *": "scratch",
    },
    _HANDLES | {"tpu_kernel_module_t": (*STRANGE, "handle")},
    beside={
        "devid": ("-1", "99"), "heap_id": ("-1", "3"), "dst": ("gone",), "src": ("gone",), "function": ("99",),
        "args": ("NULL",), "module_file": ('"absent"',), "func_name": ('"absent"',), "dst_offset": ("65",),
        "src_offset": ("65",), "offset": ("64",), "count": ("0", "-1"), "n": ("0", "-1"),
        "vmem": ("NULL",), "timeout": ("0",), "heap_id_mask": ("0", "8"), "format_size": ("3",), "dst_stride": ("2",),
        "paddr": ("0", "4096"), "dmem": ("&gone",), "core_id": ("1", "-1"), "core_num": ("0", "2", "0x7fffffff"),
        "param_num": ("0", "2", "-1"), "argc": ("0", "1", "-1", "0x7fffffff"), "card_id": ("99",),
        "sys_mem": ("mem", "gone"), "coeff_count": ("0", "-1"), "param_list": ("&lost_launch",),
        "core_list": ("&no_core",),
    },
    handles=("bm_handle_t", "tpu_kernel_module_t"),
    end=("bm_free_device(handle, mem)", "bm_dev_free(handle)"),
    twins={
        "sg_device_mem_t": {"gone": "sg_gone"}, "sg_device_mem_t *": {"&gone": "&sg_gone"},
        "bm_device_mem_u64_t": {"gone": "u64_gone"}, "bm_device_mem_u64_t *": {"&gone": "&u64_gone"},
    },
    globals=_CARD_GLOBALS + "static sg_device_mem_t sg_mem, sg_gone; static bm_device_mem_u64_t u64_mem, u64_gone;"
    "static int core, no_core = 1; static tpu_launch_param_t launch, lost_launch = {1, 0, 0, 0};",
)  # fmt: skip
NETWORKS = Walk(
    bmrt.LIBRARY,
    _CARD + "bm_dev_free(freed); runtime = bmrt_create(handle); over = bmrt_create(handle); bmrt_destroy(over);",
    {
        "bm_handle_t": "handle", "runtime_t": "runtime", "bm_device_mem_t": "mem", "bm_shape_t": "shape",
        "const bm_shape_t *": "&shape", "const char *": '"absent"', "name_t": '"absent"', "const int *": "shape.dims",
        "const void *": "scratch", "void *": "scratch", "mem_info_t *": "&needs", "const mem_info_t *": "&needs",
    },
    _HANDLES | {"runtime_t": (*STRANGE, "handle", "over"), "const bm_net_info_t *": ("NULL", "(uintptr_t)scratch")},
    beside={
        "dtype": ("99",), "num_dims": ("0", "9"), "bmodel_path": ('"absent"',), "net_name": ('"absent"',),
        "index": ("-1", "5"), "size": ("64",), "shape": ("none",), "devid": ("-1", "1"),
        "dev_addr": ("0", "4096"), "mem_info": ("&lost",), "core_num": ("-1", "2", "0x7fffffff"),
    },
    handles=("bm_handle_t", "runtime_t"),
    end=("bmrt_destroy(runtime)", "bm_free_device(handle, mem)", "bm_dev_free(handle)"),
    globals=_CARD_GLOBALS + "static void *runtime, *over; static bm_shape_t shape = {2, {1, 4}}, none;"
    "static mem_info_t needs, lost = {{4096, 8}, {4096, 8}, {4096, 8}, {4096, 8}, {4096, 8}};",
    without=frozenset(
        {f"bmrt_launch_tensor{one}" for one in ("", "_ex", "_multi_cores", "_multi_thread")} | {"bmrt_shape_is_same"}
    ),  # below
)  # fmt: skip
_ISSUING = [one for one in tpukernel.LIBRARY.prototypes if TABLE[one.name].returns == "void"]
COMMANDS = Walk(
    tpukernel.LIBRARY,
    "",
    {
        "local_addr_t": "0", "static_addr_t": "0", "system_addr_t": "0x100000000", "addr_t": "0x100000000",
        "global_addr_t": "0x100000000",
        "const dim4 *": "&shape", "const dim2 *": "&one", "const padding_t *": "&pad", "data_type_t": "DT_FP32",
        "const variable_t *": "&variable", "scalar_t": "scalar", "rounding_mode_t": "RM_UP",
    },
    {
        "local_addr_t": ("0xffffffff",), "static_addr_t": ("0xffffffff",), "system_addr_t": ("0",),
        "global_addr_t": ("1",), "addr_t": ("1ull << 60",), "data_type_t": ("99",), "rounding_mode_t": ("99",),
    },
    lost=frozenset({tuple(one.c_type for one in each.parameters): each.name for each in _ISSUING}.values()),
    globals="static dim4 shape = {1, 1, 1, 1}; static dim2 one = {1, 1}; static padding_t pad;"
    "static variable_t variable; static scalar_t scalar;",
)  # fmt: skip
_NUMBERS = "-1", "99", "2147483647", "(-2147483647 - 1)"
_STRANGE_IN_BMNET = "0", "7", "(uintptr_t)scratch", "~0ull", "(uintptr_t)builder + 1"
_TEXTS = '""', '"no.such"', '"["', '"bottom[99999999999]"', '"\\xff\\xfe"'
BMNET = Walk(
    c_library.LIBRARY,
    "",
    {
        "builder_t": "builder", "op_t": "op", "layer_t": "layer", "const char *": '"name"', "path_t": '"absent"',
        "name_t": '"name"', "layer_callback_t": "same", "inst_callback_t": "issued", "cpu_callback_t": "computed",
    },
    {
        "builder_t": (*_STRANGE_IN_BMNET, "(uintptr_t)op", "destroyed"),
        "op_t": (*_STRANGE_IN_BMNET, "(uintptr_t)layer", "old_op"),
        "layer_t": (*_STRANGE_IN_BMNET, "(uintptr_t)op", "old_layer"),
        **dict.fromkeys(("layer_callback_t", "inst_callback_t", "cpu_callback_t"), ("NULL",)),
    },
    beside={
        "ver": _NUMBERS, "index": _NUMBERS, "axis": _NUMBERS, "opt": _NUMBERS, "dim": ("0", "-1"),
        **dict.fromkeys("nchw", ("0", "-1", "2147483647", "(-2147483647 - 1)")),
        **dict.fromkeys(("layer_name", "inst_name", "sub_type", "name", "net_name"), ('""', '"\\xff"')),
        "field": _TEXTS,
        "dst": ('"/nowhere/x"', '""', '"/"'), "caffemodel": ('""',),
        "plugin_path": ('"/nowhere/x"', '"/"', '"/dev/null"'),
    },
    handles=("builder_t", "op_t", "layer_t"),
    globals="#include <stdlib.h>\nstatic bmnet_builder_t builder, destroyed; static bmnet_op_t op, old_op;"
    "static bmnet_layer_t layer, old_layer; static bmnet_layer_callback_t same; static bmnet_cpu_callback_t computed;"
    "static bmnet_inst_callback_t issued;",
)  # fmt: skip
