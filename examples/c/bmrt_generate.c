/* Greedy tokens from a bundle of a language model for the BM1684X: bmrt_generate BUNDLE HIDDEN COUNT TOKEN...
   Tokens are printed; the file HIDDEN gets the hidden state behind each token that was read last. */
#include <bmruntime_interface.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TENSORS 5
#define MASKED(type) (uint16_t)((type) == BM_BFLOAT16 ? 0xC61C : 0xF0E2) /* about -10000 */

typedef struct {
    const bm_net_info_t *info;
    bm_tensor_t inputs[TENSORS], outputs[TENSORS];
} net_t;

static bm_handle_t handle;
static void *runtime;

static void fail(const char *what)
{
    fprintf(stderr, "%s: %s\n", what, bmcapi_last_error());
    exit(1);
}

static void copy(bm_tensor_t *to, const bm_tensor_t *from, size_t offset, size_t size)
{
    if (bm_memcpy_d2d_byte(handle, to->device_mem, 0, from->device_mem, offset, size) != BM_SUCCESS)
        fail("bm_memcpy_d2d_byte");
}

static void put(bm_tensor_t *to, void *data)
{
    if (bm_memcpy_s2d(handle, to->device_mem, data) != BM_SUCCESS)
        fail("bm_memcpy_s2d");
}

static void empty(bm_tensor_t *tensor)
{
    uint8_t zero = 0;
    if (bm_memset_device_ext(handle, &zero, 1, tensor->device_mem) != BM_SUCCESS)
        fail("bm_memset_device_ext");
}

/* A stage of a network, with the tensors in the memory where the network has them. */
static int find(net_t *net, const char *name, int layer, int stage)
{
    char text[64];
    int i;
    snprintf(text, sizeof text, name, layer);
    net->info = bmrt_get_network_info(runtime, text);
    if (!net->info || stage >= net->info->stage_num || net->info->input_num > TENSORS || net->info->output_num > TENSORS)
        return 0;
    for (i = 0; i < net->info->input_num; i++)
        bmrt_tensor_with_device(&net->inputs[i], net->info->stages[stage].input_mems[i], net->info->input_dtypes[i],
                                net->info->stages[stage].input_shapes[i]);
    for (i = 0; i < net->info->output_num; i++)
        bmrt_tensor_with_device(&net->outputs[i], net->info->stages[stage].output_mems[i], net->info->output_dtypes[i],
                                net->info->stages[stage].output_shapes[i]);
    return 1;
}

static void launch(net_t *net)
{
    if (!bmrt_launch_tensor_ex(runtime, net->info->name, net->inputs, net->info->input_num, net->outputs,
                               net->info->output_num, true, false)
        || bm_thread_sync(handle) != BM_SUCCESS)
        fail(net->info->name);
}

/* The token with the highest score behind the hidden state at `offset` of a tensor, the first of equal ones; NaN is no
   score. */
static int next(net_t *head, const bm_tensor_t *states, size_t offset, FILE *hidden)
{
    size_t size = bmrt_tensor_bytesize(&head->inputs[0]), count = bmrt_shape_count(&head->outputs[0].shape), i, best = 0;
    float *scores = (float *)malloc(count * sizeof *scores);
    float highest = -INFINITY;
    void *state = malloc(size);
    if (!scores || !state)
        fail("malloc");
    copy(&head->inputs[0], states, offset, size);
    if (bm_memcpy_d2s(handle, state, head->inputs[0].device_mem) != BM_SUCCESS || fwrite(state, 1, size, hidden) != size)
        fail("hidden state");
    launch(head);
    if (bm_memcpy_d2s(handle, scores, head->outputs[0].device_mem) != BM_SUCCESS)
        fail("bm_memcpy_d2s");
    for (i = 0; i < count; i++)
        if (scores[i] > highest) {
            highest = scores[i];
            best = i;
        }
    free(scores);
    free(state);
    return (int)best;
}

/* The shortest stage with room for a token in that row, or -1. */
static int smallest(const net_t *cached, int row)
{
    int best = -1, room = 0, stage;
    for (stage = 0; stage < cached->info->stage_num; stage++) {
        int length = cached->info->stages[stage].input_shapes[3].dims[1];
        if (length > row && (best < 0 || length < room)) {
            best = stage;
            room = length;
        }
    }
    return best;
}

int main(int argc, char **argv)
{
    net_t embedding, embedding_cache, head, block, cached;
    int prompt = argc - 4, layers = 0, length, row, count, token, stage, layer, i;
    int *ids, *positions;
    size_t bytes, columns, column;
    uint16_t *mask;
    bm_tensor_t states;
    const char **names = NULL;
    FILE *hidden;

    if (argc < 5 || !(hidden = fopen(argv[2], "wb")))
        return fprintf(stderr, "usage: bmrt_generate BUNDLE HIDDEN COUNT TOKEN...\n"), 2;
    if (bm_dev_request(&handle, 0) != BM_SUCCESS || !(runtime = bmrt_create_ex(&handle, 1)))
        fail("bm_dev_request");
    bmrt_set_flags(runtime, BM_RUNTIME_SHARE_MEM);
    if (!bmrt_load_bmodel(runtime, argv[1]))
        fail("bmrt_load_bmodel");
    if (!find(&embedding, "embedding", 0, 0) || !find(&embedding_cache, "embedding_cache", 0, 0)
        || !find(&head, "lm_head", 0, 0) || !find(&cached, "block_cache_%d", 0, 0))
        fail("no bundle");
    if (head.info->output_dtypes[0] != BM_FLOAT32)
        return fprintf(stderr, "lm_head gives no logits: cut it with bmnet-tool static\n"), 1;
    bmrt_get_network_names(runtime, &names);
    for (i = 0; names && i < bmrt_get_network_number(runtime); i++)
        layers += !strncmp(names[i], "block_cache_", strlen("block_cache_"));
    free(names);
    length = embedding.inputs[0].shape.dims[1];
    if (prompt > length)
        return fprintf(stderr, "the prompt has %d tokens, %d are possible\n", prompt, length), 1;
    bytes = bmrt_tensor_bytesize(&cached.outputs[1]); /* of a row of a cache */

    /* The prompt: all its rows at once, row i sees the columns up to i. */
    columns = cached.inputs[3].shape.dims[1] > length ? (size_t)cached.inputs[3].shape.dims[1] : (size_t)length;
    ids = (int *)calloc((size_t)length, sizeof *ids);
    positions = (int *)calloc((size_t)length, sizeof *positions);
    mask = (uint16_t *)malloc((columns + 1) * (size_t)length * sizeof *mask);
    if (!ids || !positions || !mask)
        fail("malloc");
    for (i = 0; i < length; i++)
        for (column = 0; column < (size_t)length; column++)
            mask[(size_t)i * (size_t)length + column]
                = i < prompt && column <= (size_t)i ? 0 : MASKED(cached.info->input_dtypes[2]);
    for (i = 0; i < prompt; i++) {
        ids[i] = atoi(argv[4 + i]);
        positions[i] = i;
    }
    put(&embedding.inputs[0], ids);
    launch(&embedding);
    states = embedding.outputs[0];
    for (layer = 0; layer < layers; layer++) {
        if (!find(&block, "block_%d", layer, 0) || !find(&cached, "block_cache_%d", layer, 0))
            fail("no bundle");
        copy(&block.inputs[0], &states, 0, bmrt_tensor_bytesize(&states)); /* before anything else overwrites them */
        put(&block.inputs[1], positions);
        put(&block.inputs[2], mask);
        launch(&block);
        for (i = 0; i < 2; i++) {
            empty(&cached.inputs[3 + i]);
            copy(&cached.inputs[3 + i], &block.outputs[1 + i], 0, (size_t)prompt * bytes);
        }
        states = block.outputs[0];
    }
    bytes = bmrt_tensor_bytesize(&head.inputs[0]);
    token = next(&head, &states, (size_t)(prompt - 1) * bytes, hidden);
    printf("%d\n", token);

    /* Further tokens, one by one; their keys and values go into the next row of the caches. */
    for (row = prompt, count = atoi(argv[3]); row < prompt + count - 1; row++) {
        stage = smallest(&cached, row);
        if (stage < 0)
            return fprintf(stderr, "the caches are full\n"), 1;
        put(&embedding_cache.inputs[0], &token);
        launch(&embedding_cache);
        states = embedding_cache.outputs[0];
        for (layer = 0; layer < layers; layer++) {
            if (!find(&cached, "block_cache_%d", layer, stage))
                fail("a stage is missing");
            columns = (size_t)cached.inputs[3].shape.dims[1];
            for (column = 0; column < columns; column++)
                mask[column] = column < (size_t)row ? 0 : MASKED(cached.info->input_dtypes[2]);
            mask[columns] = 0; /* the new token */
            copy(&cached.inputs[0], &states, 0, bmrt_tensor_bytesize(&states));
            put(&cached.inputs[1], &row);
            put(&cached.inputs[2], mask);
            for (i = 1; i <= 2; i++) {
                bytes = bmrt_tensor_bytesize(&cached.outputs[i]);
                bm_set_device_mem(&cached.outputs[i].device_mem, (unsigned int)bytes,
                                  bm_mem_get_device_addr(cached.inputs[2 + i].device_mem) + (size_t)row * bytes);
            }
            launch(&cached);
            states = cached.outputs[0];
        }
        token = next(&head, &states, 0, hidden);
        printf("%d\n", token);
    }

    free(ids);
    free(positions);
    free(mask);
    bmrt_destroy(runtime);
    bm_dev_free(handle);
    return fclose(hidden) != 0;
}
