/* Runs the kernel of tpu_softmax.c: tpu_host MODULE.so ROWS COLUMNS, floats from stdin to stdout. */
#include <bmlib_runtime.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct {
    unsigned long long dst, src;
    int rows, columns;
} softmax_args;

static int failed(const char *what)
{
    fprintf(stderr, "%s: %s\n", what, bmcapi_last_error());
    return 1;
}

int main(int argc, char **argv)
{
    bm_handle_t handle;
    bm_device_mem_t input, output;
    tpu_kernel_module_t module;
    tpu_kernel_function_t kernel;
    softmax_args args;
    float *data;
    unsigned int size;

    if (argc != 4)
        return fprintf(stderr, "usage: tpu_host MODULE.so ROWS COLUMNS\n"), 2;
    args.rows = atoi(argv[2]);
    args.columns = atoi(argv[3]);
    size = (unsigned int)(args.rows * args.columns) * (unsigned int)sizeof *data;
    data = (float *)malloc(size);
    if (!data || fread(data, 1, size, stdin) != size)
        return fprintf(stderr, "the input cannot be read\n"), 1;

    if (bm_dev_request(&handle, 0) != BM_SUCCESS)
        return failed("bm_dev_request");
    if (bm_malloc_device_byte(handle, &input, size) != BM_SUCCESS || bm_malloc_device_byte(handle, &output, size) != BM_SUCCESS)
        return failed("bm_malloc_device_byte");
    if (bm_memcpy_s2d(handle, input, data) != BM_SUCCESS)
        return failed("bm_memcpy_s2d");
    module = tpu_kernel_load_module_file(handle, argv[1]);
    if (!module)
        return failed("tpu_kernel_load_module_file");
    kernel = tpu_kernel_get_function(handle, module, "softmax");
    args.dst = bm_mem_get_device_addr(output);
    args.src = bm_mem_get_device_addr(input);
    if (!kernel || tpu_kernel_launch(handle, kernel, &args, sizeof args) != BM_SUCCESS)
        return failed("tpu_kernel_launch");
    if (bm_memcpy_d2s(handle, data, output) != BM_SUCCESS)
        return failed("bm_memcpy_d2s");

    bm_free_device(handle, input);
    bm_free_device(handle, output);
    tpu_kernel_unload_module(handle, module);
    bm_dev_free(handle);
    if (fwrite(data, 1, size, stdout) != size)
        return fprintf(stderr, "the output cannot be written\n"), 1;
    free(data);
    return 0;
}
