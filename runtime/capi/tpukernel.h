typedef union {
    char s8;
    unsigned char u8;
    short s16;
    unsigned short u16;
    struct { unsigned short bits; } f16;
    struct { unsigned short bits; } bf16;
    int s32;
    unsigned int u32;
    float f32;
} scalar_t;
typedef enum { TENSOR = 0, SCALAR = 1, VECTOR = 2 } variable_type_t;
typedef struct {
    variable_type_t type;
    union { scalar_t scalar; local_addr_t addr; } context;
} variable_t;
typedef struct { int start; int end; } range_t;
#define ALIGN(x, a) ((((x) + (a) - 1) / (a)) * (a))
#define ALIGN_DOWN(x, a) (((x) / (a)) * (a))
#define DIV_UP(a, b) ((a) == 0 ? 0 : ((a) - 1) / (b) + 1)
#define MIN(a, b) ((a) < (b) ? (a) : (b))
#define MAX(a, b) ((a) > (b) ? (a) : (b))
#define UNUSED(x) ((void)(x))
#define TPUKERNEL_LOG(...) printf(__VA_ARGS__)
#define TPUKERNEL_DBG(...) ((void)0)
#define TPUKERNEL_ASSERT(holds) \
    do { \
        if (!(holds)) { \
            fprintf(stderr, "%s:%d: assertion %s\n", __FILE__, __LINE__, #holds); \
            abort(); \
        } \
    } while (0)
/* Makes a kernel, a function of one pointer, known by its name to launches; stands behind it, without a semicolon. */
#define TPUKERNEL_FUNC_REGISTER(kernel) \
    static void bmcapi_call_##kernel(const void *arguments) { (void)kernel(arguments); } \
    static bmcapi_entry bmcapi_entry_##kernel = {#kernel, bmcapi_call_##kernel, NULL}; \
    __attribute__((constructor)) static void bmcapi_begin_##kernel(void) { bmcapi_register(&bmcapi_entry_##kernel); } \
    __attribute__((destructor)) static void bmcapi_end_##kernel(void) { bmcapi_forget(&bmcapi_entry_##kernel); }
