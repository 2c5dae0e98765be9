/* BMNet's C++ classes on libbmnet.so, for C++11. A refused call throws bmnet::Error with a sentence; so does a build
   whose layers or instructions threw, with their words. */
#ifndef BMCAPI_BMNET_HPP
#define BMCAPI_BMNET_HPP
#include <cstdint>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>
#include "bmnet.h"
#include "bmnet_caffe.hpp"
namespace bmnet {
typedef int CHIP_VER;
class Error : public std::runtime_error {
public:
    explicit Error(const std::string &sentence) : std::runtime_error(sentence) {}
};
/* Throws where the last call of this thread was refused. */
inline void check_last()
{
    if (*bmcapi_last_error())
        throw Error(bmcapi_last_error());
}
inline void need(bmerr_t code)
{
    if (code != BM_SUCCESS)
        throw Error(bmcapi_last_error());
}
template <typename Call> auto checked(Call call) -> typename std::enable_if<!std::is_void<decltype(call())>::value, decltype(call())>::type
{
    auto result = call();
    check_last();
    return result;
}
template <typename Call> auto checked(Call call) -> typename std::enable_if<std::is_void<decltype(call())>::value>::type
{
    call();
    check_last();
}
class TensorShape {
public:
    TensorShape() : op_(NULL), index_(0) {}
    explicit TensorShape(const std::vector<int> &dims) : dims_(dims), op_(NULL), index_(0) {}
    void CopyFrom(const TensorShape &from)
    {
        const std::vector<int> dims = from.dims_;
        for (std::size_t axis = 0; axis < dims.size(); axis++)
            add_dim(dims[axis]);
    }
    int dim_size() const { return static_cast<int>(dims_.size()); }
    int dim(int index) const
    {
        if (index < 0 || index >= dim_size())
            throw Error("dimension " + std::to_string(index) + " does not exist, there are " + std::to_string(dim_size()));
        return dims_[static_cast<std::size_t>(index)];
    }
    void add_dim(int value)
    {
        if (op_)
            need(bmnet_op_add_output_dim(op_, index_, value));
        dims_.push_back(value);
    }
    /* Elements on the chip have 1 byte. */
    int data_type_size() const { return 1; }
    void set_data_type_size(std::size_t size)
    {
        if (size != 1)
            throw Error("elements of " + std::to_string(size) + " bytes are not supported: the chip's have 1");
    }
private:
    friend class TensorOp;
    std::vector<int> dims_;
    bmnet_op_t op_; /* where it grows, for an output of an op */
    int index_;
};
class TGCustomizedParameter {
public:
    TGCustomizedParameter() : op_(NULL) {}
    std::string sub_type() const { return checked([&] { return bmnet_op_sub_type(op_); }); }
    void set_sub_type(const std::string &name) { need(bmnet_op_set_sub_type(op_, name.c_str())); }
    int i32_param_size() const { return checked([&] { return bmnet_op_i32_params(op_); }); }
    int f32_param_size() const { return checked([&] { return bmnet_op_f32_params(op_); }); }
    int i32_param(int index) const { return checked([&] { return bmnet_op_i32_param(op_, index); }); }
    float f32_param(int index) const { return checked([&] { return bmnet_op_f32_param(op_, index); }); }
    void add_i32_param(int value) { need(bmnet_op_add_i32_param(op_, value)); }
    void add_f32_param(float value) { need(bmnet_op_add_f32_param(op_, value)); }
private:
    friend class TensorOp;
    bmnet_op_t op_;
};
class TensorOp {
public:
    TensorOp() : op_(NULL) {}
    explicit TensorOp(bmnet_op_t op) : op_(op)
    {
        param_.op_ = op;
        const int ins = checked([&] { return bmnet_op_inputs(op); }), outs = checked([&] { return bmnet_op_outputs(op); });
        for (int index = 0; index < ins; index++) {
            std::vector<int> dims;
            const int rank = checked([&] { return bmnet_op_input_dims(op, index); });
            for (int axis = 0; axis < rank; axis++)
                dims.push_back(checked([&] { return bmnet_op_input_dim(op, index, axis); }));
            inputs_.push_back(TensorShape(dims));
        }
        outputs_.reserve(MOST_OUTPUTS);
        for (int index = 0; index < outs; index++) {
            std::vector<int> dims;
            const int rank = checked([&] { return bmnet_op_output_dims(op, index); });
            for (int axis = 0; axis < rank; axis++)
                dims.push_back(checked([&] { return bmnet_op_output_dim(op, index, axis); }));
            outputs_.push_back(TensorShape(dims));
        }
    }
    std::string type() const { return "tg_customized"; }
    int input_shape_size() const { return static_cast<int>(inputs_.size()); }
    int output_shape_size() const { return static_cast<int>(outputs_.size()); }
    const TensorShape &input_shape(int index) const { return at(inputs_, index, "input"); }
    const TensorShape &output_shape(int index) const { return at(outputs_, index, "output"); }
    /* The shape grows with add_dim and CopyFrom. */
    TensorShape *add_output_shape()
    {
        if (outputs_.size() == MOST_OUTPUTS)
            throw Error("an op has at most 64 outputs");
        need(bmnet_op_add_output(op_));
        outputs_.push_back(TensorShape());
        outputs_.back().op_ = op_;
        outputs_.back().index_ = output_shape_size() - 1;
        return &outputs_.back();
    }
    uint64_t global_input(int index) const { return checked([&] { return bmnet_op_global_input(op_, index); }); }
    uint64_t global_output(int index) const { return checked([&] { return bmnet_op_global_output(op_, index); }); }
    /* Numbers of a CPU function. */
    const float *input_data(int index) const { return checked([&] { return bmnet_op_input_data(op_, index); }); }
    float *output_data(int index) const { return checked([&] { return bmnet_op_output_data(op_, index); }); }
    TGCustomizedParameter *mutable_tg_customized_param() { return &param_; }
    const TGCustomizedParameter &tg_customized_param() const { return param_; }
private:
    enum { MOST_OUTPUTS = 64 };
    static const TensorShape &at(const std::vector<TensorShape> &shapes, int index, const char *what)
    {
        if (index < 0 || index >= static_cast<int>(shapes.size()))
            throw Error(std::string(what) + " " + std::to_string(index) + " does not exist, there are " + std::to_string(shapes.size()));
        return shapes[static_cast<std::size_t>(index)];
    }
    bmnet_op_t op_;
    std::vector<TensorShape> inputs_, outputs_;
    TGCustomizedParameter param_;
};
/* Runs a callback; what it throws becomes the reason why it failed. */
template <typename Action> int guarded(bmnet_op_t op, Action action)
{
    try {
        action();
        return 0;
    } catch (const std::exception &error) {
        bmnet_op_fail(op, error.what());
    } catch (...) {
        bmnet_op_fail(op, "an exception that is no std::exception");
    }
    return 1;
}
class FrontendContext;
class Layer {
public:
    Layer() {}
    explicit Layer(FrontendContext *) {}
    virtual ~Layer() {}
    virtual std::string layer_name() = 0;
    virtual void dump() = 0;
    virtual void setup(TensorOp *) {}
    virtual void codegen(TensorOp *op) = 0;
protected:
    void add_output_offset(int) {}
private:
    friend class CaffeNetBuilder;
    virtual void begin(bmnet_layer_t) {}
};
class CaffeLayer : public Layer {
public:
    CaffeLayer() : layer_(parameters_) {}
    explicit CaffeLayer(FrontendContext *ctx) : Layer(ctx), layer_(parameters_) {}
protected:
    caffe::LayerParameter &layer_;
private:
    CaffeLayer(const CaffeLayer &);
    CaffeLayer &operator=(const CaffeLayer &);
    void begin(bmnet_layer_t layer) override { parameters_ = caffe::LayerParameter(layer); }
    caffe::LayerParameter parameters_;
};
class CustomizedCaffeLayer : public CaffeLayer {
public:
    CustomizedCaffeLayer() {}
    explicit CustomizedCaffeLayer(FrontendContext *ctx) : CaffeLayer(ctx) {}
    void setup(TensorOp *op) override { op->mutable_tg_customized_param()->set_sub_type(layer_name()); }
};
/* The kernel context of an instruction: bmk1880 functions as methods. */
class BM188xBackendContext {
public:
    explicit BM188xBackendContext(bmk1880_context_t *kernel = NULL) : bmk_(kernel) {}
    bmk1880_context_t *bm_get_bmk() const { return bmk_; }
/* METHODS */
private:
    bmk1880_context_t *bmk_;
};
/* A line of a calibration table. */
class LayerCalibrationParameter {
public:
    class Blob {
    public:
        explicit Blob(float threshold) : threshold_(threshold) {}
        float threshold_y() const { return threshold_; }
    private:
        float threshold_;
    };
    void add_threshold_y(float value) { thresholds_.push_back(value); }
    int threshold_y_size() const { return static_cast<int>(thresholds_.size()); }
    float threshold_y(int index) const
    {
        if (index < 0 || index >= threshold_y_size())
            throw Error("threshold " + std::to_string(index) + " does not exist, there are " + std::to_string(threshold_y_size()));
        return thresholds_[static_cast<std::size_t>(index)];
    }
    int blob_param_size() const { return threshold_y_size(); }
    Blob blob_param(int index) const { return Blob(threshold_y(index)); }
private:
    std::vector<float> thresholds_;
};
/* An instruction has `encode`, or `compute` as newer programs call it. */
class TensorInst {
public:
    TensorInst() {}
    explicit TensorInst(TensorOp &op) : op_(op) {}
    virtual ~TensorInst() {}
    virtual std::string inst_name() = 0;
    virtual void dump() = 0;
    virtual void encode() { compute(); }
    virtual void compute() { throw Error("instructions of '" + inst_name() + "' have neither encode() nor compute()"); }
protected:
    TensorOp op_;
private:
    friend class NetBuilder;
    virtual void begin(bmnet_op_t op, bmk1880_context_t *) { op_ = TensorOp(op); }
};
class TensorFixedInst : public TensorInst {
public:
    TensorFixedInst() {}
    explicit TensorFixedInst(TensorOp &op) : TensorInst(op) {}
    void SetCalibrationParameter(const LayerCalibrationParameter &calibration) { m_calibrationParameter = calibration; }
    void AddInputCalibrationParameter(const LayerCalibrationParameter &calibration)
    {
        m_inputCalibrationParameter.push_back(calibration);
    }
protected:
    LayerCalibrationParameter m_calibrationParameter;
    std::vector<LayerCalibrationParameter> m_inputCalibrationParameter;
};
class CustomizedTensorFixedInst : public TensorFixedInst {
public:
    CustomizedTensorFixedInst() : _ctx(&context_) {}
protected:
    /* Both are 0: flags of the calls (CTRL_NEURON, CTRL_WEIGHT) add the bases. */
    uint64_t get_global_neuron_base() { return 0; }
    uint64_t get_global_weight_base() { return 0; }
    BM188xBackendContext *const _ctx;
private:
    CustomizedTensorFixedInst(const CustomizedTensorFixedInst &);
    CustomizedTensorFixedInst &operator=(const CustomizedTensorFixedInst &);
    void begin(bmnet_op_t op, bmk1880_context_t *kernel) override
    {
        op_ = TensorOp(op);
        context_ = BM188xBackendContext(kernel);
        m_calibrationParameter = LayerCalibrationParameter();
        m_inputCalibrationParameter.clear();
        for (int index = 0; index < op_.output_shape_size(); index++)
            m_calibrationParameter.add_threshold_y(checked([&] { return bmnet_op_output_threshold(op, index); }));
        for (int index = 0; index < op_.input_shape_size(); index++) {
            m_inputCalibrationParameter.push_back(LayerCalibrationParameter());
            m_inputCalibrationParameter.back().add_threshold_y(checked([&] { return bmnet_op_input_threshold(op, index); }));
        }
    }
    BM188xBackendContext context_;
};
/* Layers and instructions belong to the program, and live as long as the builder. */
class NetBuilder {
public:
    virtual ~NetBuilder()
    {
        if (builder_)
            bmnet_builder_destroy(builder_);
    }
    void addCustomizedTensorInst(TensorInst *inst)
    {
        if (!inst)
            throw Error("addCustomizedTensorInst: inst is NULL");
        need(bmnet_builder_add_inst(builder_, inst->inst_name().c_str(), encode, inst));
    }
    void build(int n, int c, int h, int w, int opt = BM_OPT_LAYER_GROUP_WITH_WEIGHT)
    {
        need(bmnet_builder_build(builder_, n, c, h, w, opt));
    }
    void store_prototxt(const char *dst) { need(bmnet_builder_store_prototxt(builder_, dst)); }
    void store_model(const char *net_name, const char *dst, const char *plugin_path = NULL)
    {
        need(bmnet_builder_store_model(builder_, net_name, dst, plugin_path));
    }
protected:
    NetBuilder() : builder_(NULL) {}
    bmnet_builder_t builder_;
private:
    NetBuilder(const NetBuilder &);
    NetBuilder &operator=(const NetBuilder &);
    static int encode(void *inst, bmnet_op_t op, bmk1880_context_t *kernel)
    {
        return guarded(op, [&] {
            TensorInst *one = static_cast<TensorInst *>(inst);
            one->begin(op, kernel);
            one->encode();
        });
    }
};
class CaffeNetBuilder : public NetBuilder {
public:
    CaffeNetBuilder(CHIP_VER ver, const char *modified_proto, const char *caffemodel, const char *weight_bin = NULL,
                    const char *in_ctable = NULL, const char *out_ctable = NULL)
    {
        need(bmnet_builder_create(ver, modified_proto, caffemodel, weight_bin, in_ctable, out_ctable, &builder_));
    }
    void addCustomizedLayer(Layer *layer)
    {
        if (!layer)
            throw Error("addCustomizedLayer: layer is NULL");
        need(bmnet_builder_add_layer(builder_, layer->layer_name().c_str(), codegen, layer));
    }
private:
    static int codegen(void *layer, bmnet_op_t op, bmnet_layer_t parameters)
    {
        return guarded(op, [&] {
            Layer *one = static_cast<Layer *>(layer);
            TensorOp tensors(op);
            one->begin(parameters);
            one->setup(&tensors);
            one->codegen(&tensors);
        });
    }
};
#ifdef BMNET_BUILDER_TEMPLATES
/* As some SDKs have it: CaffeBuilder<int8_t>. Weights of the chip have one byte; results are never made real numbers. */
template <typename Dtype> class CaffeBuilder : public CaffeNetBuilder {
    static_assert(sizeof(Dtype) == 1, "weights of the BM1880 have one byte: CaffeBuilder<int8_t>");
public:
    CaffeBuilder(CHIP_VER ver, const char *modified_proto, const char *caffemodel, const char *weight_bin = NULL,
                 const char *in_ctable = NULL, const char *out_ctable = NULL, bool enable_dequantized = false)
        : CaffeNetBuilder(ver, modified_proto, caffemodel, weight_bin, in_ctable, out_ctable)
    {
        if (enable_dequantized)
            throw Error("CaffeBuilder: enable_dequantized is not supported, pass false");
    }
};
#else
typedef NetBuilder Builder;
typedef CaffeNetBuilder CaffeBuilder;
#endif
typedef std::function<void(TensorOp &)> CpuFunction;
inline int call_cpu_function(void *function, bmnet_op_t op)
{
    return guarded(op, [&] {
        TensorOp tensors(op);
        (*static_cast<CpuFunction *>(function))(tensors);
    });
}
/* bmnet_register_cpu_layer with any callable object, which is kept until the process ends. */
inline void register_cpu_layer(const std::string &sub_type, const CpuFunction &function)
{
    CpuFunction *kept = new CpuFunction(function);
    if (bmnet_register_cpu_layer(sub_type.c_str(), call_cpu_function, kept) != BM_SUCCESS) {
        delete kept;
        throw Error(bmcapi_last_error());
    }
}
}
#endif
