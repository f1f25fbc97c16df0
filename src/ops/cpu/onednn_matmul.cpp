// oneDNN's matmul with plain layouts and the caller's scratch. No heap calls of our own while running; oneDNN itself
// makes a few small ones per run.
#include <algorithm>
#include <bit>
#include <cstring>
#include <dnnl.hpp>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/threads.h"
#include "ops/cast/convert.h"
#include "ops/cpu/coded_matmul.h"
#include "ops/cpu/matmul.h"

namespace headroom {
namespace {

dnnl::memory::data_type onednn_type(DType dtype) {
  HR_CHECK(dtype == DType::f32 || dtype == DType::bf16, "no oneDNN matmul of {}", dtype_name(dtype));
  return dtype == DType::f32 ? dnnl::memory::data_type::f32 : dnnl::memory::data_type::bf16;
}

// The process's CPU engine. Equal products share a primitive, of which each takes up to 100 KB: kernels that differ in
// an attribute alone, as the updates of every layer's matrices, have equal ones. oneDNN keeps the last ones that were
// made beyond their owners' lives, so it keeps few: more than the different products of a layer.
const dnnl::engine& onednn_engine() {
  constexpr int kPrimitives = 64;
  static const dnnl::engine engine = [] {
    dnnl::set_primitive_cache_capacity(kPrimitives);
    return dnnl::engine(dnnl::engine::kind::cpu, 0);
  }();
  return engine;
}

// A dense rows x cols matrix; `transposed`: stored as its transpose.
dnnl::memory::desc describe(int64_t rows, int64_t cols, DType dtype, bool transposed) {
  const dnnl::memory::dims strides = transposed ? dnnl::memory::dims{1, rows} : dnnl::memory::dims{cols, 1};
  return {{rows, cols}, onednn_type(dtype), strides};
}

dnnl::matmul::primitive_desc describe_matmul(const MatmulSpec& spec) {
  const auto [rows, cols, depth] = spec.size;
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  if (spec.addend) {
    dnnl::post_ops after;
    after.append_sum(1.0f);
    attributes.set_post_ops(after);
  }
  const dnnl::memory::desc a = describe(rows, depth, spec.operand, spec.a_transposed);
  const dnnl::memory::desc b = describe(depth, cols, spec.operand, spec.b_transposed);
  const dnnl::memory::desc c = describe(rows, cols, spec.result, false);
  if (!spec.bias) return {dnnl::matmul::desc(a, b, c), attributes, onednn_engine()};
  return {dnnl::matmul::desc(a, b, describe(1, cols, DType::f32, false), c), attributes, onednn_engine()};
}

// Adds to C in place. A separate addend is copied into C first, so that both cases do the same arithmetic.
class OnednnMatmul final : public Matmul {
 public:
  OnednnMatmul(const MatmulSpec& spec, const dnnl::matmul::primitive_desc& description)
      : spec_(spec),
        primitive_(description),
        stream_(onednn_engine()),
        a_(description.src_desc(), onednn_engine(), nullptr),
        b_(description.weights_desc(), onednn_engine(), nullptr),
        c_(description.dst_desc(), onednn_engine(), nullptr),
        workspace_(description.scratchpad_desc(), onednn_engine(), nullptr),
        scratch_bytes_(static_cast<int64_t>(description.scratchpad_desc().get_size())) {
    arguments_ = {{DNNL_ARG_SRC, a_.get()},
                  {DNNL_ARG_WEIGHTS, b_.get()},
                  {DNNL_ARG_DST, c_.get()},
                  {DNNL_ARG_SCRATCHPAD, workspace_.get()}};
    if (!spec.bias) return;
    bias_ = dnnl::memory(description.bias_desc(), onednn_engine(), nullptr);
    arguments_.push_back({DNNL_ARG_BIAS, bias_.get()});
  }

  int64_t scratch_bytes() const override { return scratch_bytes_; }

  void run(const MatmulArguments& arguments) const override {
    if (spec_.addend && arguments.addend != arguments.c) copy_addend(arguments);
    a_.set_data_handle(const_cast<void*>(arguments.a));
    b_.set_data_handle(const_cast<void*>(arguments.b));
    c_.set_data_handle(arguments.c);
    workspace_.set_data_handle(arguments.scratch);
    if (spec_.bias) bias_.set_data_handle(const_cast<float*>(arguments.bias));
    const dnnl_status_t status =
        dnnl_primitive_execute(primitive_.get(), stream_.get(), static_cast<int>(arguments_.size()), arguments_.data());
    HR_CHECK(status == dnnl_success, "oneDNN's matmul failed with status {}", static_cast<int>(status));
  }

 private:
  void copy_addend(const MatmulArguments& arguments) const {
    const int64_t row = spec_.size.cols * dtype_bytes(spec_.result);
    parallel_for(spec_.size.rows, 1, [&](int64_t begin, int64_t end, int) {
      std::memcpy(static_cast<std::byte*>(arguments.c) + begin * row,
                  static_cast<const std::byte*>(arguments.addend) + begin * row,
                  static_cast<size_t>((end - begin) * row));
    });
  }

  MatmulSpec spec_;
  dnnl::matmul primitive_;
  dnnl::stream stream_;
  // Only the addresses of these change from run to run.
  dnnl::memory a_, b_, c_, bias_, workspace_;
  std::vector<dnnl_exec_arg_t> arguments_;
  int64_t scratch_bytes_ = 0;
};

// A product, then another added to it: bf16 results are rounded twice.
class ProductAndMore final : public Matmul {
 public:
  ProductAndMore(std::unique_ptr<Matmul> product, std::unique_ptr<Matmul> more)
      : product_(std::move(product)), more_(std::move(more)) {}
  int64_t scratch_bytes() const override { return std::max(product_->scratch_bytes(), more_->scratch_bytes()); }
  void run(const MatmulArguments& arguments) const override {
    product_->run(arguments);
    more_->run({arguments.p, arguments.q, arguments.c, nullptr, arguments.c, arguments.scratch});
  }

 private:
  std::unique_ptr<Matmul> product_, more_;
};

MatmulOffer make_with_low_rank(const MatmulSpec& spec, const DeviceFacts& facts, int64_t booked) {
  MatmulSpec plain = spec, more = spec;
  plain.low_rank = more.low_rank = 0;
  more.size.depth = spec.low_rank;
  more.a_transposed = false;
  more.b_transposed = spec.q_transposed;
  more.bias = false;
  more.addend = true;
  MatmulOffer product = make_onednn_matmul(plain, facts, booked), onto = make_onednn_matmul(more, facts, booked);
  if (!product.matmul) return product;
  if (!onto.matmul) return onto;
  return {std::make_unique<ProductAndMore>(std::move(product.matmul), std::move(onto.matmul)), {}};
}

// Rounds B into scratch first.
class RoundedMatmul final : public Matmul {
 public:
  RoundedMatmul(std::unique_ptr<Matmul> product, const MatmulSpec& spec) : product_(std::move(product)), spec_(spec) {}
  int64_t scratch_bytes() const override { return rounded_bytes(spec_) + product_->scratch_bytes(); }
  void run(const MatmulArguments& arguments) const override {
    convert_in_parallel(arguments.b, DType::f32, arguments.scratch, DType::bf16, spec_.size.depth * spec_.size.cols);
    MatmulArguments rounded = arguments;
    rounded.b = arguments.scratch;
    rounded.scratch += rounded_bytes(spec_);
    product_->run(rounded);
  }

 private:
  std::unique_ptr<Matmul> product_;
  MatmulSpec spec_;
};

MatmulOffer make_rounded(const MatmulSpec& spec, const DeviceFacts& facts, int64_t booked) {
  MatmulSpec narrow = spec;
  narrow.rounds_b = false;
  MatmulOffer product = make_onednn_matmul(narrow, facts, booked - rounded_bytes(spec));
  if (product.matmul) product.matmul = std::make_unique<RoundedMatmul>(std::move(product.matmul), spec);
  return product;
}

// Rows of B at multiples of 4 KiB evict each other from the caches. oneDNN copies B first only if their length is a
// power of two; at other lengths it runs at half speed.
bool rows_of_b_collide(const MatmulSpec& spec) {
  const int64_t row = spec.size.cols * dtype_bytes(spec.operand);
  return spec.operand == DType::f32 && !spec.b_transposed && row % 4096 == 0 &&
         !std::has_single_bit(static_cast<uint64_t>(row));
}

}  // namespace

MatmulOffer make_onednn_matmul(const MatmulSpec& spec, const DeviceFacts& facts, int64_t booked) {
  if (spec.multiply == Multiply::int8) return {nullptr, "the operands are multiplied as 8-bit codes"};
  if (spec.operand == DType::f16) return {nullptr, "oneDNN has no product of f16"};
  if (!spec.b_storage.dense()) return make_coded_matmul(spec, facts, booked, make_onednn_matmul);
  if (spec.rounds_b) return make_rounded(spec, facts, booked);
  if (spec.low_rank > 0) return make_with_low_rank(spec, facts, booked);
  if (!facts.capabilities.has(kAvx512)) return {nullptr, "the machine has no AVX-512"};
  if (spec.operand == DType::f32 && spec.multiply != Multiply::full)
    return {nullptr, "oneDNN would not round the operands"};
  if (rows_of_b_collide(spec)) return {nullptr, "rows of B collide in the caches"};
  try {
    const dnnl::matmul::primitive_desc description = describe_matmul(spec);
    const std::string_view implementation = description.impl_info_str();
    // Other implementations allocate work space on the heap while running.
    if (implementation.substr(0, 3) != "brg") return {nullptr, fmt::format("oneDNN offers {} only", implementation)};
    const int64_t needed = static_cast<int64_t>(description.scratchpad_desc().get_size());
    if (needed > booked)
      return {nullptr, fmt::format("oneDNN needs {} bytes of scratch, {} are booked", needed, booked)};
    return {std::make_unique<OnednnMatmul>(spec, description), {}};
  } catch (const dnnl::error& error) {
    return {nullptr, fmt::format("oneDNN: {}", error.what())};
  }
}

}  // namespace headroom
