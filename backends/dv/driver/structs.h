/* Structures of the DV driver interface (dv.md 1); all are little-endian and without gaps. */

struct dmp_dv_info {
    uint32_t size;
    uint32_t version;
};

struct dmp_dv_info_v0 {
    struct dmp_dv_info header;
    int32_t ub_size;
    int32_t max_kernel_size;
    int32_t conv_freq;
    int32_t fc_freq;
    int32_t max_fc_vector_size;
    int32_t rsvd;
};

struct dmp_dv_cmdraw {
    uint32_t size;
    uint8_t device_type;
    uint8_t version;
    uint8_t rsvd[2];
};

struct dmp_dv_cmdraw_conv_v0_run {
    dmp_dv_buf weight_buf;
    uint32_t conv_pad;
    uint32_t pool_pad;
    uint16_t m;
    uint16_t conv_enable;
    uint16_t p;
    uint16_t pz;
    uint16_t conv_stride;
    uint16_t conv_dilation;
    uint16_t weight_fmt;
    uint16_t pool_enable;
    uint16_t pool_avg_param;
    uint16_t pool_size;
    uint16_t pool_stride;
    uint16_t actfunc;
    uint16_t actfunc_param;
    uint16_t rectifi_en;
    uint16_t lrn;
    uint16_t rsvd;
};

struct dmp_dv_cmdraw_conv_v0 {
    struct dmp_dv_cmdraw header;
    dmp_dv_buf input_buf;
    dmp_dv_buf output_buf;
    dmp_dv_buf eltwise_buf;
    uint32_t topo;
    uint16_t w;
    uint16_t h;
    uint16_t z;
    uint16_t c;
    uint16_t input_circular_offset;
    uint16_t output_mode;
    struct dmp_dv_cmdraw_conv_v0_run run[32];
};

struct dmp_dv_cmdraw_conv_v1 {
    struct dmp_dv_cmdraw header;
    dmp_dv_buf u8tofp16_table;
    uint16_t to_bgr;
    uint16_t rsvd[3];
    struct dmp_dv_cmdraw_conv_v0 conv_cmd;
};

struct dmp_dv_cmdraw_fc_v0 {
    struct dmp_dv_cmdraw header;
    dmp_dv_buf weight_buf;
    dmp_dv_buf input_buf;
    dmp_dv_buf output_buf;
    uint16_t input_size;
    uint16_t output_size;
    uint16_t weight_fmt;
    uint16_t actfunc;
    uint16_t actfunc_param;
    uint16_t rsvd[3];
};

struct dmp_dv_cmdraw_ipu_v0 {
    struct dmp_dv_cmdraw header;
    dmp_dv_buf tex;
    dmp_dv_buf rd;
    dmp_dv_buf wr;
    uint8_t fmt_tex;
    uint8_t fmt_rd;
    uint8_t fmt_wr;
    uint8_t rsvd1;
    uint16_t tex_width;
    uint16_t tex_height;
    uint16_t rect_width;
    uint16_t rect_height;
    int32_t stride_rd;
    int32_t stride_wr;
    uint32_t lut[32];
    uint8_t ncolor_lut;
    uint8_t alpha;
    uint8_t transpose;
    uint8_t use_const_alpha;
    uint8_t use_tex;
    uint8_t use_rd;
    uint8_t blf;
    int8_t ridx;
    int8_t gidx;
    int8_t bidx;
    int8_t aidx;
    uint8_t cnv_type;
    uint8_t cnv_param[3];
    uint8_t rsvd2[5];
};

struct dmp_dv_cmdraw_maximizer_v0 {
    struct dmp_dv_cmdraw header;
    dmp_dv_buf input_buf;
    dmp_dv_buf output_buf;
    uint16_t width;
    uint16_t height;
    uint8_t nclass;
    uint8_t rsvd[3];
};
