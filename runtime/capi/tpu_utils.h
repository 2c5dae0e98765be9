#ifndef TPU_UTILS_H
#define TPU_UTILS_H
#include "common_def.h"
#include "tpu_kernel.h"
/* The type and the rounding of commands for those of a layer. */
static inline data_type_t tpu_type_convert(sg_data_type_t data_type)
{
    static const data_type_t found[] = {
        DT_FP32, DT_FP16, DT_INT8, DT_UINT8, DT_INT16, DT_UINT16, DT_INT32, DT_UINT32, DT_BFP16, DT_INT4, DT_UINT4, DT_FP20,
        DT_FP8E5M2, DT_FP8E4M3
    };
    TPUKERNEL_ASSERT((int)data_type >= 0 && (unsigned)data_type < sizeof(found) / sizeof(found[0]));
    return found[data_type];
}
static inline rounding_mode_t tpu_round_mode_convert(sg_round_mode_t mode)
{
    /* -1: no rounding of a command. */
    static const int found[] = {
        RM_HALF_AWAY_FROM_ZERO, RM_HALF_UP, RM_HALF_DOWN, RM_HALF_TO_EVEN, -1, -1, RM_TOWARDS_ZERO, -1, RM_UP, RM_DOWN
    };
    TPUKERNEL_ASSERT((int)mode >= 0 && mode <= SG_TRIM_DOWN && found[mode] >= 0);
    return (rounding_mode_t)found[mode];
}
#endif
