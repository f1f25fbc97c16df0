#include "ops/cpu/onednn_matmul.h"

#include <cstring>
#include <string_view>

#include "base/error.h"
#include "base/threads.h"

namespace headroom {
namespace {

dnnl::memory::data_type onednn_type(DType dtype) {
  HR_CHECK(dtype == DType::f32 || dtype == DType::bf16, "no oneDNN matmul of {}", dtype_name(dtype));
  return dtype == DType::f32 ? dnnl::memory::data_type::f32 : dnnl::memory::data_type::bf16;
}

dnnl::memory::desc describe(int64_t batch, int64_t rows, int64_t cols, DType dtype, const MatrixLayout& layout) {
  if (batch == 1) return {{rows, cols}, onednn_type(dtype), dnnl::memory::dims{layout.row, layout.col}};
  return {{batch, rows, cols}, onednn_type(dtype), dnnl::memory::dims{layout.batch, layout.row, layout.col}};
}

dnnl::matmul::primitive_desc describe_matmul(const OnednnMatmulSpec& spec) {
  const auto [rows, cols, depth] = spec.size;
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  if (spec.scale != 1) attributes.set_output_scales(0, {spec.scale});
  if (spec.accumulate) {
    dnnl::post_ops after;
    after.append_sum(1.0f);
    attributes.set_post_ops(after);
  }
  const dnnl::memory::desc a = describe(spec.batch, rows, depth, spec.operand, spec.a);
  const dnnl::memory::desc b = describe(spec.batch, depth, cols, spec.operand, spec.b);
  const dnnl::memory::desc c = describe(spec.batch, rows, cols, spec.result, spec.c);
  if (!spec.bias) return {dnnl::matmul::desc(a, b, c), attributes, onednn_engine()};
  const dnnl::memory::desc bias = describe(1, 1, cols, DType::f32, {cols, 1, 0});
  return {dnnl::matmul::desc(a, b, bias, c), attributes, onednn_engine()};
}

// Runs `body` while the team has `count` threads: oneDNN cuts its work when a primitive is created.
template <typename F>
auto with_threads(int count, F body) {
  struct Restore {
    int before = threads();
    ~Restore() { set_threads(before); }
  } restore;
  if (count > 0) set_threads(count);
  return body();
}

}  // namespace

const dnnl::engine& onednn_engine() {
  static const dnnl::engine engine = [] {
    dnnl::set_primitive_cache_capacity(0);
    return dnnl::engine(dnnl::engine::kind::cpu, 0);
  }();
  return engine;
}

OnednnMatmul::OnednnMatmul(const OnednnMatmulSpec& spec, const dnnl::matmul::primitive_desc& description)
    : primitive_(description),
      stream_(onednn_engine()),
      scratch_bytes_(static_cast<int64_t>(description.scratchpad_desc().get_size())) {
  const dnnl::engine& engine = onednn_engine();
  for (int i = 0; i < spec.lanes; ++i) {
    Lane lane{dnnl::memory(description.src_desc(), engine, nullptr),
              dnnl::memory(description.weights_desc(), engine, nullptr),
              dnnl::memory(description.dst_desc(), engine, nullptr),
              {},
              dnnl::memory(description.scratchpad_desc(), engine, nullptr),
              {}};
    lane.arguments = {{DNNL_ARG_SRC, lane.a.get()},
                      {DNNL_ARG_WEIGHTS, lane.b.get()},
                      {DNNL_ARG_DST, lane.c.get()},
                      {DNNL_ARG_SCRATCHPAD, lane.workspace.get()}};
    if (spec.bias) {
      lane.bias = dnnl::memory(description.bias_desc(), engine, nullptr);
      lane.arguments.push_back({DNNL_ARG_BIAS, lane.bias.get()});
    }
    lanes_.push_back(std::move(lane));
  }
}

std::unique_ptr<OnednnMatmul> OnednnMatmul::create(const OnednnMatmulSpec& spec, int64_t booked, std::string& refusal) {
  try {
    return with_threads(spec.threads, [&]() -> std::unique_ptr<OnednnMatmul> {
      const dnnl::matmul::primitive_desc description = describe_matmul(spec);
      const int64_t needed = static_cast<int64_t>(description.scratchpad_desc().get_size());
      if (std::string_view(description.impl_info_str()).substr(0, 3) != "brg")
        refusal = fmt::format("oneDNN offers {} only", description.impl_info_str());
      else if (needed > booked)
        refusal = fmt::format("oneDNN needs {} bytes of scratch, {} are booked", needed, booked);
      else
        return std::unique_ptr<OnednnMatmul>(new OnednnMatmul(spec, description));
      return nullptr;
    });
  } catch (const dnnl::error& error) {
    refusal = fmt::format("oneDNN: {}", error.what());
    return nullptr;
  }
}

void OnednnMatmul::run(const void* a, const void* b, void* c, std::byte* scratch, const float* bias, int lane) const {
  const Lane& at = lanes_[static_cast<size_t>(lane)];
  at.a.set_data_handle(const_cast<void*>(a));
  at.b.set_data_handle(const_cast<void*>(b));
  at.c.set_data_handle(c);
  at.workspace.set_data_handle(scratch);
  if (at.bias) at.bias.set_data_handle(const_cast<float*>(bias));
  const dnnl_status_t status = dnnl_primitive_execute(primitive_.get(), stream_.get(),
                                                      static_cast<int>(at.arguments.size()), at.arguments.data());
  HR_CHECK(status == dnnl_success, "oneDNN's matmul failed with status {}", static_cast<int>(status));
}

namespace {

// Adds to C in place; an addend elsewhere is copied into C first, so that both cases do the same arithmetic.
class PlainOnednnMatmul final : public Matmul {
 public:
  PlainOnednnMatmul(const MatmulSpec& spec, int64_t c_stride, std::unique_ptr<OnednnMatmul> product)
      : spec_(spec), c_stride_(c_stride), product_(std::move(product)) {}

  int64_t scratch_bytes() const override { return product_->scratch_bytes(); }

  void run(const MatmulArguments& arguments) const override {
    if (spec_.addend && arguments.addend != arguments.c) copy_addend(arguments);
    product_->run(arguments.a, arguments.b, arguments.c, arguments.scratch, arguments.bias);
  }

 private:
  void copy_addend(const MatmulArguments& arguments) const {
    const int64_t width = dtype_bytes(spec_.result);
    parallel_for(spec_.size.rows, 1, [&](int64_t begin, int64_t end, int) {
      for (int64_t row = begin; row < end; ++row)
        std::memcpy(static_cast<std::byte*>(arguments.c) + row * c_stride_ * width,
                    static_cast<const std::byte*>(arguments.addend) + row * c_stride_ * width,
                    static_cast<size_t>(spec_.size.cols * width));
    });
  }

  MatmulSpec spec_;
  int64_t c_stride_;
  std::unique_ptr<OnednnMatmul> product_;
};

MatrixLayout stored(bool transposed, int64_t stride) {
  return transposed ? MatrixLayout{1, stride, 0} : MatrixLayout{stride, 1, 0};
}

}  // namespace

MatmulOffer make_onednn_matmul(const MatmulSpec& spec, const DeviceFacts& facts, int64_t booked) {
  if (facts.isa < 512) return {nullptr, "the machine has no AVX-512"};
  const auto [rows, cols, depth] = spec.size;
  OnednnMatmulSpec wanted;
  wanted.size = spec.size;
  wanted.operand = spec.operand;
  wanted.result = spec.result;
  wanted.a = stored(spec.a_transposed, spec.a_stride ? spec.a_stride : spec.a_transposed ? rows : depth);
  wanted.b = stored(spec.b_transposed, spec.b_stride ? spec.b_stride : spec.b_transposed ? depth : cols);
  wanted.c = stored(false, spec.c_stride ? spec.c_stride : cols);
  wanted.bias = spec.bias;
  wanted.accumulate = spec.addend;
  std::string refusal;
  std::unique_ptr<OnednnMatmul> product = OnednnMatmul::create(wanted, booked, refusal);
  if (!product) return {nullptr, refusal};
  return {std::make_unique<PlainOnednnMatmul>(spec, wanted.c.row, std::move(product)), {}};
}

}  // namespace headroom
