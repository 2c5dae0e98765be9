typedef union {
    struct { bm_mem_type_t mem_type : 3; unsigned int gmem_heapid : 3; unsigned int reserved : 26; } u;
    unsigned int rawflags;
} bm_mem_flags_t;
typedef struct bm_mem_desc {
    union {
        struct { unsigned long device_addr; unsigned int reserved; int dmabuf_fd; } device;
        struct { void *system_addr; unsigned int reserved0; int reserved1; } system;
    } u;
    bm_mem_flags_t flags;
    unsigned int size;
} bm_mem_desc_t;
typedef struct bm_mem_desc bm_device_mem_t;
typedef struct bm_mem_desc bm_system_mem_t;
