/* BMNet in C: layers of the program are converted and computed on the CPU, and models with them run; misuse is answered. */
#include <bmnet.h>
#include <bmruntime.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
static bmnet_op_t old_op;
static bmnet_layer_t old_layer;
static int calls;
static int same(void *user, bmnet_op_t op, bmnet_layer_t layer)
{
    int axis, dims = bmnet_op_input_dims(op, 0);
    old_op = op;
    old_layer = layer;
    if (bmnet_op_add_output(op) || dims != 4 || bmnet_op_inputs(op) != 1)
        return 1;
    for (axis = 0; axis < dims; axis++)
        if (bmnet_op_add_output_dim(op, 0, bmnet_op_input_dim(op, 0, axis)))
            return 2;
    if (bmnet_layer_count(layer, "elu_param.alpha") == 1)
        bmnet_op_add_f32_param(op, (float)bmnet_layer_number(layer, "elu_param.alpha", 0));
    bmnet_op_add_i32_param(op, *(int *)user);
    return strcmp(bmnet_layer_text(layer, "bottom", 0), bmnet_op_f32_params(op) ? "minus" : "conv");
}
static int never(void *user, bmnet_op_t op, bmnet_layer_t layer)
{
    (void)user, (void)layer;
    bmnet_op_fail(op, "not on Fridays");
    return 0;
}
static int outside(void *user, bmnet_op_t op, bmnet_layer_t layer)
{
    (void)user;
    return bmnet_layer_number(layer, "no_param.of[1].mine", 0) > bmnet_op_inputs(op);
}
static int numbers(bmnet_op_t op)
{
    int axis, count = 1;
    for (axis = 0; axis < bmnet_op_output_dims(op, 0); axis++)
        count *= bmnet_op_output_dim(op, 0, axis);
    return count;
}
static int elu(void *user, bmnet_op_t op)
{
    const float *x = bmnet_op_input_data(op, 0);
    float *y = bmnet_op_output_data(op, 0), alpha = bmnet_op_f32_param(op, 0);
    int i;
    ++*(int *)user;
    for (i = 0; i < numbers(op); i++)
        y[i] = x[i] > 0 ? x[i] : (float)(alpha * (exp(x[i]) - 1));
    return 0;
}
static int minus(void *user, bmnet_op_t op)
{
    const float *x = bmnet_op_input_data(op, 0);
    float *y = bmnet_op_output_data(op, 0);
    int i;
    (void)user;
    for (i = 0; i < numbers(op); i++)
        y[i] = -x[i];
    return 0;
}
static int inference(const char *model, uint8_t *input)
{
    uint8_t output[4 * 144 * 4];
    bmnet_output_info_t info;
    bmctx_t ctx;
    bmnet_t net;
    shape_t shape = shape_t4(1, 2, 8, 8);
    if (bm_init(0, &ctx) || bmnet_register_bmodel(ctx, model, &net) || bmnet_set_input_shape(net, shape))
        return 1;
    if (bmnet_get_output_info(net, &info) || info.output_size > sizeof output)
        return 2;
    if (bmnet_inference(net, input, output) || fwrite(output, 1, info.output_size, stdout) != info.output_size)
        return 3;
    bmnet_cleanup(net);
    bm_exit(ctx);
    return 0;
}
static int says(const char *words)
{
    const char *last = bmcapi_last_error();
    if (strstr(last, words))
        return 1;
    fprintf(stderr, "not \"%s\" but \"%s\"\n", words, last);
    return 0;
}
static void *elsewhere(void *builder)
{
    return bmnet_builder_store_prototxt((bmnet_builder_t)builder, "/nowhere/net") ? builder : NULL;
}
int main(int argc, char **argv)
{
    bmnet_builder_t builder = NULL;
    uint8_t input[128];
    pthread_t thread;
    void *refused;
    int mark = 7;
    if (argc != 6 || fread(input, 1, sizeof input, stdin) != sizeof input)
        return 2;
    if (!bmnet_builder_create(BM_CHIP_BM1880, argv[1], argv[2], NULL, argv[3], NULL, NULL) || !says("builder is NULL"))
        return 3;
    if (!bmnet_builder_build(NULL, 1, 2, 8, 8, OPT_NONE) || !says("builder is NULL"))
        return 4;
    if (bmnet_builder_create(BM_CHIP_BM1880, argv[1], argv[2], NULL, argv[3], NULL, &builder) || !builder)
        return 5;
    if (!bmnet_builder_add_layer(builder, "ELU", NULL, NULL) || !says("codegen is NULL"))
        return 6;
    if (!bmnet_builder_add_layer((bmnet_builder_t)(uintptr_t)12345, "ELU", same, NULL) || !says("not a builder_t"))
        return 7;
    if (!bmnet_register_cpu_layer(NULL, elu, NULL) || !says("sub_type is NULL"))
        return 8;
    if (bmnet_register_cpu_layer("ELU", elu, &calls) || bmnet_register_cpu_layer("ELU", elu, &calls))
        return 9;
    if (!bmnet_register_cpu_layer("ELU", minus, &calls) || !says("another CPU function"))
        return 10;
    if (bmnet_builder_add_layer(builder, "Minus", never, NULL) || bmnet_builder_add_layer(builder, "ELU", same, &mark))
        return 11;
    if (!bmnet_builder_build(builder, 1, 2, 8, 8, OPT_NONE) || !says("not on Fridays"))
        return 12;
    if (bmnet_builder_add_layer(builder, "Minus", outside, NULL))
        return 13;
    if (!bmnet_builder_build(builder, 1, 2, 8, 8, OPT_NONE) || !says("no field 'no_param.of[1].mine'"))
        return 14;
    if (bmnet_builder_add_layer(builder, "Minus", same, &mark))
        return 15;
    if (!bmnet_builder_build(builder, 1, 2, 8, 8, OPT_NONE) || !says("no CPU function"))
        return 16;
    if (bmnet_register_cpu_layer("Minus", minus, NULL) || !bmnet_builder_build(builder, 1, 2, 8, 8, 99) || !says("opt 99"))
        return 17;
    if (bmnet_builder_build(builder, 1, 2, 8, 8, OPT_NONE) || bmnet_builder_store_model(builder, "net", argv[4], NULL))
        return 18;
    if (bmnet_op_inputs(old_op) != -1 || !says("is of a call that is over") || bmnet_layer_text(old_layer, "name", 0))
        return 19;
    if (bmnet_op_input_data((bmnet_op_t)(uintptr_t)builder, 0) || !says("not a op_t"))
        return 20;
    if (pthread_create(&thread, NULL, elsewhere, builder) || pthread_join(thread, &refused) || refused != builder)
        return 21;
    bmnet_builder_destroy(builder);
    if (!bmnet_builder_build(builder, 1, 2, 8, 8, OPT_NONE) || !says("was destroyed"))
        return 22;
    if (inference(argv[4], input) || inference(argv[5], input) || calls < 2)
        return 23;
    return 0;
}
