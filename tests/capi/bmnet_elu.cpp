// A program as the manual of BMNet describes it: two custom layers of a net in Caffe, one by instructions, one on the CPU.
#include <bmnet/builder/CaffeBuilder.hpp>
#include <bmnet/frontend/caffe/CustomizedCaffeLayer.hpp>
#include <bmnet/targets/plat-bm188x/CustomizedTensorFixedInst.hpp>
#include <cmath>
#include <cstring>
#include <iostream>

namespace bmnet {

class EluLayer : public CustomizedCaffeLayer {
public:
  std::string layer_name() { return std::string("ELU"); }
  void dump() { std::cout << layer_.type() << " param:" << std::endl; }
  void codegen(TensorOp *op) {
    const TensorShape &input_shape = op->input_shape(0);
    const caffe::ELUParameter &in_param = layer_.elu_param();
    if (layer_.bottom_size() != 1 || layer_.top(0) != "elu" || layer_.has_relu_param() || !layer_.has_elu_param())
      throw Error("the layer is another one");
    TensorShape *output_shape = op->add_output_shape();
    output_shape->CopyFrom(input_shape);
    output_shape->set_data_type_size(sizeof(int8_t));
    op->mutable_tg_customized_param()->add_f32_param(in_param.alpha());
    add_output_offset(0);
  }
};

class ScaleLayer : public CustomizedCaffeLayer {
public:
  std::string layer_name() { return "Minus"; }
  void dump() {}
  void setup(TensorOp *op) override {
    CustomizedCaffeLayer::setup(op);
    op->mutable_tg_customized_param()->set_sub_type("minus");
  }
  void codegen(TensorOp *op) {
    TensorShape *shape = op->add_output_shape();
    for (int i = 0; i < op->input_shape(0).dim_size(); i++)
      shape->add_dim(op->input_shape(0).dim(i));
    op->mutable_tg_customized_param()->add_i32_param(-1);
  }
};

class MinusInst : public CustomizedTensorFixedInst {
public:
  std::string inst_name() { return "minus"; }
  void dump() { std::cout << op_.type() << op_.input_shape(0).dim(0); }
  void encode() {
    const TensorShape &shape = op_.input_shape(0);
    int count = 1;
    for (int i = 0; i < shape.dim_size(); i++)
      count *= shape.dim(i);
    if (m_calibrationParameter.blob_param(0).threshold_y() != 8 || m_inputCalibrationParameter[0].threshold_y(0) != 8)
      throw Error("thresholds are not those of the table");
    const int slices = 2;
    gaddr_t from = op_.global_input(0) + get_global_neuron_base(), to = op_.global_output(0) + get_global_neuron_base();
    for (int i = 0; i < slices; i++) {
      int part = count / slices + (i < count % slices);
      tensor_lmem *x = _ctx->tl_alloc(shape_t4(1, 1, 1, part), FMT_I8, CTRL_AL);
      _ctx->gdma_load(x, from, CTRL_NEURON);
      bmk1880_mul_const_param_t p;
      p.res_high = NULL;
      p.res_low = p.a = x;
      p.b = static_cast<int16_t>(op_.tg_customized_param().i32_param(0));
      p.b_is_signed = true;
      p.rshift_width = 0;
      bmk1880_tpu_mul_const(_ctx->bm_get_bmk(), &p);
      _ctx->gdma_store(x, to, CTRL_NEURON);
      _ctx->tl_free(x);
      from += part * INT8_SIZE;
      to += part * INT8_SIZE;
    }
  }
};

class Broken : public MinusInst {
public:
  void encode() { op_.input_shape(7); }
};

} // namespace bmnet

static void elu(bmnet::TensorOp &op) {
  const float alpha = op.tg_customized_param().f32_param(0);
  const float *x = op.input_data(0);
  float *y = op.output_data(0);
  int count = 1;
  for (int i = 0; i < op.output_shape(0).dim_size(); i++)
    count *= op.output_shape(0).dim(i);
  for (int i = 0; i < count; i++)
    y[i] = x[i] > 0 ? x[i] : alpha * (std::exp(x[i]) - 1);
}

template <typename Action> static bool refused(const char *word, Action action) {
  try {
    action();
  } catch (const bmnet::Error &error) {
    if (std::strstr(error.what(), word))
      return true;
    std::cerr << "another sentence: " << error.what() << std::endl;
  }
  std::cerr << "not refused: " << word << std::endl;
  return false;
}

#ifdef BMNET_BUILDER_TEMPLATES
typedef bmnet::CaffeBuilder<int8_t> Builder;
#else
typedef bmnet::CaffeBuilder Builder;
#endif
int main(int argc, char **argv) {
  if (argc != 5)
    return 2;
  bmnet::EluLayer layer;
  bmnet::ScaleLayer minus;
  bmnet::MinusInst inst;
  bmnet::Broken broken;
  bmnet::register_cpu_layer("ELU", elu);
  if (!refused("another CPU function", [] { bmnet::register_cpu_layer("ELU", elu); }))
    return 3;
  if (!refused("caffemodel is NULL", [] { Builder none(BM_CHIP_BM1880, NULL, NULL); }))
    return 4;
  if (!refused("no chip version", [&] { Builder none(1, argv[1], argv[2]); }))
    return 5;
  Builder builder(BM_CHIP_BM1880, argv[1], argv[2], NULL, argv[3], NULL);
  builder.addCustomizedLayer(&layer);
  builder.addCustomizedLayer(&minus);
  if (!refused("nothing is built yet", [&] { builder.store_model("net", argv[4]); }))
    return 6;
  builder.addCustomizedTensorInst(&broken);
  if (!refused("input 7 does not exist", [&] { builder.build(1, 2, 8, 8); }))
    return 7;
  builder.addCustomizedTensorInst(&inst);
  builder.build(1, 2, 8, 8, BM_OPT_LAYER_GROUP_WITH_GMEM_RECYCLE);
  builder.store_model("net", argv[4]);
  return 0;
}
