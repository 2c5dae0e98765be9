typedef char s8x4[4];
typedef unsigned char u8x4[4];
typedef short s16x2[2];
typedef unsigned short u16x2[2];
/* A word: a number, or bytes of four images, or halfwords of two. */
typedef union {
    float fp32;
    int s32;
    unsigned int u32;
    s8x4 _4N_s8;
    u8x4 _4N_u8;
    s16x2 _2N_s16;
    u16x2 _2N_u16;
} x32;
typedef union { short s16; unsigned short u16; } x16;
typedef union { char s8; unsigned char u8; } x8;
/* A number, or a tensor in local memory. */
typedef struct { bool is_addr; union { float val; local_addr_t addr; } context; } fp32_or_addr_t;
typedef struct { bool is_addr; union { x32 val; local_addr_t addr; } context; } x32_or_addr_t;
typedef void (*okk_kernel_func_t)(const void *);
#define OKKERNEL_LOG(...) printf(__VA_ARGS__)
#define OKKERNEL_ASSERT(holds) \
    do { \
        if (!(holds)) { \
            fprintf(stderr, "%s:%d: assertion %s\n", __FILE__, __LINE__, #holds); \
            abort(); \
        } \
    } while (0)
/* A function that is declared by others and not offered: the compiler says why. */
#if defined(__GNUC__) && !defined(__clang__)
#define OKKERNEL_WHY(why) __attribute__((warning(why)))
#else
#define OKKERNEL_WHY(why)
#endif
#ifdef __cplusplus
#define OKKERNEL_NOT_OFFERED(name, why) int name(...) OKKERNEL_WHY(#name " is not offered: " why);
#else
#define OKKERNEL_NOT_OFFERED(name, why) int name() OKKERNEL_WHY(#name " is not offered: " why);
#endif
/* Makes a kernel, a function of one pointer, known by its name to launches; stands behind it, without a semicolon. */
#define OKKERNEL_FUNC_REGISTER(kernel) \
    static void bmcapi_call_##kernel(const void *arguments) { kernel(arguments); } \
    static bmcapi_entry bmcapi_entry_##kernel = {#kernel, bmcapi_call_##kernel, NULL}; \
    __attribute__((constructor)) static void bmcapi_begin_##kernel(void) { bmcapi_register(&bmcapi_entry_##kernel); } \
    __attribute__((destructor)) static void bmcapi_end_##kernel(void) { bmcapi_forget(&bmcapi_entry_##kernel); }
