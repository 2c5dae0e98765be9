/* The walk's calls where they can be made, and callbacks that lie. */
static int visited;
static int dims(bmnet_op_t one, int count, int value)
{
    int i;
    for (i = bmnet_op_add_output(one); i < count; i++)
        if (bmnet_op_add_output_dim(one, 0, value))
            return 1;
    return 0;
}
static int copied(void *user, bmnet_op_t one, bmnet_layer_t from)
{
    int i;
    (void)user;
    old_op = one, old_layer = from;
    for (i = bmnet_op_add_output(one); i < bmnet_op_input_dims(one, 0); i++)
        if (bmnet_op_add_output_dim(one, 0, bmnet_op_input_dim(one, 0, i)))
            return 1;
    return 0;
}
static int walked(void *user, bmnet_op_t one, bmnet_layer_t from)
{
    op = one, layer = from;
    ops();
    layers();
    return 0;
}
static int walked_on_host(void *user, bmnet_op_t one)
{
    op = one;
    if (user && *(int *)user)
        ops();
    return 0;
}
static int walked_on_chip(void *user, bmnet_op_t one, bmk1880_context_t *kernel)
{
    op = one;
    ops();
    return 0;
}
static int zeros(void *user, bmnet_op_t one) { return 0; }
static int nothing(void *user, bmnet_op_t one, bmnet_layer_t from) { return 0; }
static int no_dims(void *user, bmnet_op_t one, bmnet_layer_t from) { return dims(one, 0, 1); }
static int nine_dims(void *user, bmnet_op_t one, bmnet_layer_t from) { return dims(one, 9, 1); }
static int zero_dims(void *user, bmnet_op_t one, bmnet_layer_t from) { return dims(one, 4, 0); }
static int below_zero(void *user, bmnet_op_t one, bmnet_layer_t from) { return dims(one, 4, -1); }
static int huge(void *user, bmnet_op_t one, bmnet_layer_t from) { return dims(one, 4, 2147483647); }
static int large(void *user, bmnet_op_t one, bmnet_layer_t from) { return dims(one, 4, 4096); }
static int two_outputs(void *user, bmnet_op_t one, bmnet_layer_t from) { return dims(one, 4, 2) + dims(one, 4, 2); }
static int strange_code(void *user, bmnet_op_t one, bmnet_layer_t from) { return copied(user, one, from) - 1000000; }
static int with_a_reason(void *user, bmnet_op_t one, bmnet_layer_t from)
{
    bmnet_op_fail(one, "a reason");
    return copied(user, one, from);
}
static int built_inside(void *user, bmnet_op_t one, bmnet_layer_t from)
{
    bmnet_builder_build(builder, 1, 2, 8, 8, OPT_NONE);
    return copied(user, one, from);
}
static int destroyed_inside(void *user, bmnet_op_t one, bmnet_layer_t from)
{
    bmnet_builder_destroy(builder);
    return copied(user, one, from);
}
static int inferred(const char *model)
{
    static uint8_t input[4096], output[4096];
    bmctx_t ctx;
    bmnet_t running;
    if (bm_init(0, &ctx) || bmnet_register_bmodel(ctx, model, &running))
        exit(30);
    if (bmnet_set_input_shape(running, shape_t4(1, 2, 8, 8)))
        exit(31);
    return bmnet_inference(running, input, output) != 0;
}
static const struct { const char *title; bmnet_layer_callback_t callback; const char *word; } LIES[] = {
    {"no output", nothing, "gives 0 outputs"}, {"no dimensions", no_dims, "output 0 the shape []"},
    {"nine dimensions", nine_dims, "not 1 to 8 sizes"}, {"dimensions of 0", zero_dims, "value is 0"},
    {"dimensions of -1", below_zero, "value is -1"}, {"dimensions of INT_MAX", huge, "2147483647"},
    {"4096 to the fourth", large, "4096"}, {"two outputs", two_outputs, "gives 2 outputs"},
    {"a strange code", strange_code, "returned -1000000"}, {"a reason", with_a_reason, "a reason"},
    {"a build inside of a build", built_inside, "bmnet_builder_build: builder is being built"},
    {"a destroyed builder", destroyed_inside, "bmnet_builder_destroy: builder is being built"},
};
static int attempt(char **files, bmnet_layer_callback_t convert, bmnet_inst_callback_t issue)
{
    if (bmnet_builder_create(BM_CHIP_BM1880, files[1], files[2], NULL, files[3], NULL, &builder))
        exit(20);
    if (bmnet_builder_add_layer(builder, "Minus", convert, NULL))
        exit(21);
    if (issue && bmnet_builder_add_inst(builder, "Minus", issue, NULL))
        exit(22);
    return bmnet_builder_build(builder, 1, 2, 8, 8, OPT_NONE) != 0;
}
static void *elsewhere(void *files) /* the builder is of the first thread */
{
    builders();
    said(attempt((char **)files, walked, NULL), "a walk in another thread", "failed", bmcapi_last_error());
    said(!attempt((char **)files, copied, NULL), "a build in another thread", "", "none");
    bmnet_builder_destroy(builder);
    return NULL;
}
int main(int argc, char **argv)
{
    size_t i;
    pthread_t thread;
    setvbuf(stdout, NULL, _IONBF, 0);
    same = copied, issued = walked_on_chip, computed = zeros;
    unknown(); /* before anything is made */
    if (argc != 5 || bmnet_builder_create(BM_CHIP_BM1880, argv[1], argv[2], NULL, argv[3], NULL, &destroyed))
        return 2;
    bmnet_builder_destroy(destroyed);
    if (bmnet_builder_create(BM_CHIP_BM1880, argv[1], argv[2], NULL, argv[3], NULL, &builder))
        return 3;
    builders(); /* before anything is built */
    if (bmnet_builder_build(builder, 1, 2, 8, 8, OPT_NONE) == 0 || bmnet_builder_store_prototxt(builder, argv[4]) == 0)
        return 4;
    if (bmnet_register_cpu_layer("Minus", walked_on_host, &visited))
        return 5;
    said(attempt(argv, walked, NULL), "a walk in a conversion", "failed", bmcapi_last_error());
    for (i = 0; i < sizeof LIES / sizeof *LIES; i++)
        said(attempt(argv, LIES[i].callback, NULL), LIES[i].title, LIES[i].word, bmcapi_last_error());
    if (attempt(argv, copied, NULL) || bmnet_builder_store_model(builder, "net", argv[4], NULL))
        return 6;
    visited = 1;
    said(inferred(argv[4]), "a walk on the host", "failed", bmcapi_last_error());
    said(attempt(argv, copied, walked_on_chip), "a walk in instructions", "failed", bmcapi_last_error());
    visited = 0;
    if (pthread_create(&thread, NULL, elsewhere, argv) || pthread_join(thread, NULL))
        return 7;
    unknown(); /* after everything is over */
    printf("%d calls\n", count);
    return bad != 0;
}
