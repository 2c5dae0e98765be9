/* Runs a BM1880 model: inference MODEL.bmodel INPUT OUTPUT, where INPUT holds the bytes of all inputs. */
#include <bmruntime.h>
#include <stdio.h>
#include <stdlib.h>

static int failed(const char *what)
{
    fprintf(stderr, "%s: %s\n", what, bmcapi_last_error());
    return 1;
}

int main(int argc, char **argv)
{
    bmctx_t ctx;
    bmnet_t net;
    bmnet_output_info_t info;
    uint8_t *input, *output;
    size_t size;
    FILE *file;
    size_t i;

    if (argc != 4)
        return fprintf(stderr, "usage: inference MODEL INPUT OUTPUT\n"), 2;
    if (bm_init(0, &ctx) != BM_SUCCESS)
        return failed("bm_init");
    if (bmnet_register_bmodel(ctx, argv[1], &net) != BM_SUCCESS)
        return failed("bmnet_register_bmodel");
    if (bmnet_get_output_info(net, &info) != BM_SUCCESS)
        return failed("bmnet_get_output_info");
    for (i = 0; i < info.output_num; i++)
        printf("%s: %u x %u x %u x %u, threshold %g\n", info.name_array[i], info.shape_array[i].n, info.shape_array[i].c,
               info.shape_array[i].h, info.shape_array[i].w, info.threshold_array[i]);

    size = bmmem_device_size(ctx, bmnet_input_devmem(net));
    input = (uint8_t *)malloc(size);
    output = (uint8_t *)malloc(info.output_size);
    file = fopen(argv[2], "rb");
    if (!input || !output || !file || fread(input, 1, size, file) != size)
        return fprintf(stderr, "%s: cannot be read\n", argv[2]), 1;
    fclose(file);
    if (bmnet_inference(net, input, output) != BM_SUCCESS)
        return failed("bmnet_inference");
    file = fopen(argv[3], "wb");
    if (!file || fwrite(output, 1, info.output_size, file) != info.output_size)
        return fprintf(stderr, "%s: cannot be written\n", argv[3]), 1;
    fclose(file);
    free(input);
    free(output);
    bmnet_cleanup(net);
    bm_exit(ctx);
    return 0;
}
