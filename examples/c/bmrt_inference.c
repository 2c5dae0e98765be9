/* Runs the first network of a BM1684 or BM1684X model: bmrt_inference MODEL.bmodel INPUT OUTPUT, all tensors in turn. */
#include <bmruntime_interface.h>
#include <stdio.h>
#include <stdlib.h>

#define MOST 16

static int failed(const char *what)
{
    fprintf(stderr, "%s: %s\n", what, bmcapi_last_error());
    return 1;
}

static int fill(bm_handle_t handle, bm_tensor_t *tensor, FILE *file)
{
    size_t size = bmrt_tensor_bytesize(tensor);
    void *data = malloc(size);
    int ok = data && fread(data, 1, size, file) == size && bm_memcpy_s2d(handle, tensor->device_mem, data) == BM_SUCCESS;
    free(data);
    return ok;
}

static int keep(bm_handle_t handle, bm_tensor_t *tensor, FILE *file)
{
    size_t size = bmrt_tensor_bytesize(tensor);
    void *data = malloc(size);
    int ok = data && bm_memcpy_d2s_partial(handle, data, tensor->device_mem, (unsigned int)size) == BM_SUCCESS
        && fwrite(data, 1, size, file) == size;
    free(data);
    return ok;
}

int main(int argc, char **argv)
{
    bm_handle_t handle;
    bm_tensor_t inputs[MOST], outputs[MOST];
    const bm_net_info_t *info;
    const char **names = NULL;
    void *runtime;
    FILE *file;
    int i;

    if (argc != 4)
        return fprintf(stderr, "usage: bmrt_inference MODEL INPUT OUTPUT\n"), 2;
    if (bm_dev_request(&handle, 0) != BM_SUCCESS)
        return failed("bm_dev_request");
    runtime = bmrt_create(handle);
    if (!runtime || !bmrt_load_bmodel(runtime, argv[1]))
        return failed("bmrt_load_bmodel");
    bmrt_get_network_names(runtime, &names);
    info = names ? bmrt_get_network_info(runtime, names[0]) : NULL;
    free(names);
    if (!info || info->input_num > MOST || info->output_num > MOST)
        return failed("bmrt_get_network_info");
    printf("%s: %d stages, input %s scale %g, output %s scale %g\n", info->name, info->stage_num, info->input_names[0],
           info->input_scales[0], info->output_names[0], info->output_scales[0]);

    file = fopen(argv[2], "rb");
    for (i = 0; file && i < info->input_num; i++)
        if (!bmrt_tensor(&inputs[i], runtime, info->input_dtypes[i], info->stages[0].input_shapes[i])
            || !fill(handle, &inputs[i], file))
            return failed(info->input_names[i]);
    if (!file || fclose(file))
        return failed(argv[2]);
    if (!bmrt_launch_tensor(runtime, info->name, inputs, info->input_num, outputs, info->output_num)
        || bm_thread_sync(handle) != BM_SUCCESS)
        return failed("bmrt_launch_tensor");
    file = fopen(argv[3], "wb");
    for (i = 0; file && i < info->output_num; i++)
        if (!keep(handle, &outputs[i], file))
            return failed(info->output_names[i]);
    if (!file || fclose(file))
        return failed(argv[3]);

    for (i = 0; i < info->input_num; i++)
        bm_free_device(handle, inputs[i].device_mem);
    for (i = 0; i < info->output_num; i++)
        bm_free_device(handle, outputs[i].device_mem);
    bmrt_destroy(runtime);
    bm_dev_free(handle);
    return 0;
}
