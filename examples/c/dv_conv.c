/* A convolution of one kernel 1 x 1 on a DV700: every one of 8 channels is multiplied by 2. Status 0 when it is right. */
#include <dmpdv.h>
#include <stdio.h>
#include <string.h>

#define ONE 0x3C00 /* 1.0 and 2.0 in fp16 */
#define TWO 0x4000
#define SIZE (8 * 8 * 8)

static int failed(const char *what)
{
    fprintf(stderr, "%s: %s\n", what, dmp_dv_get_last_error_message());
    return 1;
}

int main(void)
{
    static uint8_t packed[4096] __attribute__((aligned(16)));
    static struct dmp_dv_cmdraw_conv_v0 command;
    uint16_t weights[64] = {0}, bias[8] = {0}, *data;
    size_t size = sizeof packed;
    dmp_dv_context ctx = dmp_dv_context_create();
    dmp_dv_mem maps = dmp_dv_mem_alloc(ctx, 4 * SIZE), constants = dmp_dv_mem_alloc(ctx, size);
    dmp_dv_cmdlist list = dmp_dv_cmdlist_create(ctx);
    int i;

    for (i = 0; i < 8; i++)
        weights[9 * i] = TWO;
    if (dmp_dv_pack_conv_weights(8, 1, 1, 8, NULL, weights, bias, NULL, packed, &size))
        return failed("dmp_dv_pack_conv_weights");
    if (!maps || !constants || !list)
        return failed("dmp_dv_mem_alloc");
    data = (uint16_t *)dmp_dv_mem_map(maps);
    for (i = 0; i < SIZE; i++)
        data[i] = ONE;
    memcpy(dmp_dv_mem_map(constants), packed, size);

    command.header.size = sizeof command;
    command.header.device_type = DMP_DV_DEV_CONV;
    command.input_buf.mem = command.output_buf.mem = maps;
    command.output_buf.offs = 2 * SIZE;
    command.topo = 1;
    command.w = command.h = command.c = 8;
    command.z = 1;
    command.run[0].weight_buf.mem = constants;
    command.run[0].m = 8;
    command.run[0].conv_enable = 1;
    command.run[0].p = 0x0101;
    command.run[0].pz = 1;
    command.run[0].conv_stride = 0x0101;
    command.run[0].weight_fmt = 1;
    if (dmp_dv_cmdlist_add_raw(list, (struct dmp_dv_cmdraw *)&command) || dmp_dv_cmdlist_commit(list)
        || dmp_dv_cmdlist_wait(list, dmp_dv_cmdlist_exec(list)))
        return failed("dmp_dv_cmdlist");
    for (i = 0; i < SIZE; i++)
        if (data[SIZE + i] != TWO)
            return fprintf(stderr, "element %d is wrong\n", i), 1;
    dmp_dv_cmdlist_release(list);
    dmp_dv_mem_release(constants);
    dmp_dv_mem_release(maps);
    dmp_dv_context_release(ctx);
    puts("right");
    return 0;
}
