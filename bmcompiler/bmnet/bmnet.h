/* The classes of the BMNet library, which the arguments of Python's methods are checked by. `dim_t` is an int from 1 on.
   Layers and instructions may be given as objects or as classes; a constructor has the result void. */

typedef struct { } TensorShape;
typedef struct { } LayerEntry;

void TensorShape::CopyFrom(TensorShape source);
int TensorShape::dim(int index);
void TensorShape::add_dim(dim_t value);
void TGCustomizedParameter::set_sub_type(const char *name);
int TGCustomizedParameter::i32_param(int index);
float TGCustomizedParameter::f32_param(int index);
void TGCustomizedParameter::add_i32_param(long value);
void TGCustomizedParameter::add_f32_param(float value);
TensorShape TensorOp::input_shape(int index);
TensorShape TensorOp::output_shape(int index);
u64 TensorOp::global_input(int index);
u64 TensorOp::global_output(int index);
void Layer::add_output_offset(int offset);
void TensorFixedInst::SetCalibrationParameter(LayerEntry calibration_parameter);
void TensorFixedInst::AddInputCalibrationParameter(LayerEntry calibration_parameter);
void Builder::Builder(CHIP_VER ver);
void Builder::addCustomizedTensorInst(inst_t inst);
void Builder::build(dim_t n, dim_t c, dim_t h, dim_t w, int opt);
void Builder::store_prototxt(path_t dst);
void Builder::store_model(const char *net_name, path_t dst, maybe path_t plugin_path);
void CaffeBuilder::CaffeBuilder(CHIP_VER ver, maybe path_t modified_proto, path_t caffemodel,
    maybe path_t weight_bin, maybe path_t in_ctable, maybe path_t out_ctable);
void CaffeBuilder::addCustomizedLayer(layer_t layer);
void CaffeBuilder::build(dim_t n, dim_t c, dim_t h, dim_t w, int opt);
