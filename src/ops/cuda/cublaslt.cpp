// The library stores matrices by columns and headroom stores them by rows. A stored row here is a column of the
// library's, so that C = A B is the library's C^T = B^T A^T, with the operands exchanged and nothing moved.
#include "ops/cuda/cublaslt.h"

#include <algorithm>
#include <bit>
#include <map>
#include <mutex>
#include <tuple>

#include "base/error.h"
#include "ops/cuda/library.h"
#include "ops/cuda/rehearsal.h"
#include "ops/cuda/trial.h"

namespace headroom {
namespace {

using namespace cublaslt;

// The handle, which lives as long as any of its products.
class Library {
 public:
  explicit Library(const Api& api) : api(api) {
    const int status = api.create(&handle);
    if (status != kSuccess)
      throw Error(ErrorKind::run, fmt::format("{} cannot be used on this device: {}", name(), api.status_text(status)),
                  "install the cuBLAS that belongs to the driver, or run without it: HEADROOM_CUDA_WITHOUT=cublaslt");
  }
  ~Library() { api.destroy(handle); }
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;

  // Since CUDA 12 the number has two digits for each part after the first.
  std::string name() const {
    const size_t version = api.version();
    if (version < 100000) return fmt::format("cuBLASLt {}", version);
    return fmt::format("cuBLASLt {}.{}.{}", version / 10000, version / 100 % 100, version % 100);
  }
  void check(int status, const char* what) const {
    if (status == kSuccess) return;
    throw Error(ErrorKind::run, fmt::format("{}: {} failed: {}", name(), what, api.status_text(status)),
                "see the driver's messages (dmesg), or run without it: HEADROOM_CUDA_WITHOUT=cublaslt");
  }

  const Api api;
  Handle handle = nullptr;
};

// A descriptor that is destroyed with its owner.
template <typename T>
class Owned {
 public:
  Owned() = default;
  ~Owned() {
    if (value_) drop_(value_);
  }
  Owned(const Owned&) = delete;
  Owned& operator=(const Owned&) = delete;
  T* fresh(int (*drop)(T)) {
    drop_ = drop;
    return &value_;
  }
  T get() const { return value_; }

 private:
  T value_ = nullptr;
  int (*drop_)(T) = nullptr;
};

int type_code(DType dtype) {
  if (dtype == DType::f32) return kFloat32;
  return dtype == DType::f16 ? kFloat16 : kBfloat16;
}

int type_code(Fp8Format format, DType otherwise) {
  if (format == Fp8Format::none) return type_code(otherwise);
  return format == Fp8Format::e4m3 ? kFloat8E4m3 : kFloat8E5m2;
}

// Operands that may be rounded use tensor cores. The library cannot split operands into three parts; TF32, with 11 bits
// of each operand, is used instead.
int compute_code(const MatmulSpec& spec) {
  if (spec.operand != DType::f32 || spec.multiply == Multiply::full) return kCompute32;
  return spec.multiply == Multiply::bf16 ? kComputeFastBfloat16 : kComputeFastTf32;
}

// Number of algorithms to try for a product, and the floating point operations from which trying is worthwhile.
constexpr size_t kTried = 4;
constexpr double kLeastTried = 4e9;

struct Choice {
  Algorithm algorithm{};
  int64_t workspace = 0;
};

// Offsets of the operands in a trial's memory; A is at 0.
struct Room {
  Room(const CudaProductSpec& spec, const std::vector<Choice>& choices) {
    const MatmulSpec& m = spec.matmul;
    const auto& [rows, cols, depth] = m.size;
    const int64_t operand = spec.a_format == Fp8Format::none ? dtype_bytes(m.operand) : 1;
    const auto next = [&](int64_t from, int64_t bytes) { return from + align_up(bytes, int64_t{256}); };
    c_bytes = rows * spec.c_step() * dtype_bytes(m.result);
    b = next(0, (m.a_transposed ? depth : rows) * spec.a_step() * operand);
    c = next(b, (m.b_transposed ? cols : depth) * spec.b_step() * operand);
    bias = next(c, c_bytes);
    workspace = next(bias, cols * dtype_bytes(m.result));
    bytes = workspace;
    for (const Choice& choice : choices) bytes = std::max(bytes, next(workspace, choice.workspace));
  }
  // The result is its own addend; the scales of codes are the first numbers of A.
  CudaProductArguments arguments(std::byte* at) const {
    const auto* const scale = reinterpret_cast<const float*>(at);
    return {at, at + b, at + c, at + bias, at + c, at + workspace, scale, scale};
  }
  int64_t b, c, bias, workspace, bytes, c_bytes;
};

// Names are the library's: its A is headroom's B.
class LtProduct final : public CudaProduct {
 public:
  LtProduct(std::shared_ptr<const Library> library, const CudaProductSpec& spec)
      : library_(std::move(library)), spec_(spec) {
    const auto& [rows, cols, depth] = spec.matmul.size;
    const Api& api = library_->api;
    library_->check(api.create_desc(desc_.fresh(api.destroy_desc), compute_code(spec.matmul), kFloat32),
                    "describing a product");
    set_desc(kDescTransA, int32_t{spec.matmul.b_transposed ? kTransposed : kNormal});
    set_desc(kDescTransB, int32_t{spec.matmul.a_transposed ? kTransposed : kNormal});
    if (spec.matmul.bias) {
      set_desc(kDescEpilogue, kEpilogueBias);
      set_desc(kDescBiasType, int32_t{type_code(spec.matmul.result)});
      // Algorithms are searched with the pointer set; any address with the promised alignment will do.
      set_desc(kDescBiasPointer, reinterpret_cast<const void*>(static_cast<uintptr_t>(spec.alignment)));
    }
    if (scaled()) set_scales(reinterpret_cast<const float*>(static_cast<uintptr_t>(spec.alignment)));
    const MatmulSpec& m = spec.matmul;
    const int a_type = type_code(spec.b_format, m.operand), b_type = type_code(spec.a_format, m.operand);
    describe(a_, a_type, m.b_transposed ? cols : depth, m.b_transposed ? depth : cols, spec.b_step());
    describe(b_, b_type, m.a_transposed ? depth : rows, m.a_transposed ? rows : depth, spec.a_step());
    describe(c_, type_code(m.result), rows, cols, spec.c_step());
  }

  // Finds algorithms, in the library's order; returns the reason when there are none.
  std::string choose(int64_t workspace) {
    Owned<Preference> preference;
    const Api& api = library_->api;
    library_->check(api.create_preference(preference.fresh(api.destroy_preference)), "stating preferences");
    const auto prefer = [&](int attribute, auto value) {
      library_->check(api.set_preference(preference.get(), attribute, &value, sizeof value), "stating preferences");
    };
    prefer(kPreferWorkspace, static_cast<uint64_t>(workspace));
    prefer(kPreferReduction, kReduceInWorkspace);
    for (int attribute : {kPreferAlignmentA, kPreferAlignmentB, kPreferAlignmentC, kPreferAlignmentD})
      prefer(attribute, static_cast<uint32_t>(spec_.alignment));
    constexpr int kWanted = 16;
    Heuristic found[kWanted] = {};
    int count = 0;
    const int status = api.heuristic(library_->handle, desc_.get(), a_.get(), b_.get(), c_.get(), c_.get(),
                                     preference.get(), kWanted, found, &count);
    if (status != kSuccess && status != kNotSupported) library_->check(status, "choosing an algorithm");
    for (int i = 0; status == kSuccess && i < count; ++i) {
      const Heuristic& candidate = found[i];
      if (candidate.state != kSuccess || candidate.workspace > static_cast<uint64_t>(workspace)) continue;
      if (!fixed_order(candidate.algorithm)) continue;
      choices_.push_back({candidate.algorithm, static_cast<int64_t>(candidate.workspace)});
      if (choices_.size() == kTried) break;
    }
    if (!choices_.empty()) {
      chosen_ = choices_[0];
      return {};
    }
    return fmt::format("cuBLASLt has no algorithm for it in {} bytes of workspace", workspace);
  }

  int64_t workspace_bytes() const override { return chosen_.workspace; }

  // Tries the first few algorithms on operands of this product's size and takes the fastest one that gives the same
  // bits as the first. The operands need no more memory than the arena will, which is not reserved yet.
  void try_out() {
    const auto& [rows, cols, depth] = spec_.matmul.size;
    if (choices_.size() < 2 ||
        2.0 * static_cast<double>(rows) * static_cast<double>(cols) * static_cast<double>(depth) < kLeastTried)
      return;
    if (!cuda::part_wanted("trials")) return;
    const Room room(spec_, choices_);
    const cuda::TrialMemory memory(room.bytes);
    if (!memory.there()) return;
    std::vector<cuda::Trial> trials;
    for (const Choice& choice : choices_) {
      chosen_ = choice;
      trials.push_back(trial(room, memory));
    }
    chosen_ = choices_[static_cast<size_t>(cuda::fastest_alike(trials.data(), std::ssize(trials)))];
  }

  // Loads its code. Throws Error(run) when the library or the driver refuses.
  void rehearse() const {
    // The library may clear its workspace; operand addresses only need the right alignment.
    cuda::rehearse_in(std::max<int64_t>(chosen_.workspace, 256), [this](void* at, CudaStream recording) {
      const float* const scale = static_cast<const float*>(at);
      queue({at, at, at, at, at, at, scale, scale}, recording);
    });
  }
  void run(const CudaProductArguments& arguments, CudaStream stream) const override {
    if (launch_mode() == LaunchMode::run) queue(arguments, stream);
  }

 private:
  struct Shown {
    const LtProduct& product;
    CudaProductArguments arguments;
  };

  cuda::Trial trial(const Room& room, const cuda::TrialMemory& memory) const {
    const Shown shown{*this, room.arguments(static_cast<std::byte*>(memory.at()))};
    return memory.of(
        [](const void* context, CudaStream stream) {
          const auto& [product, arguments] = *static_cast<const Shown*>(context);
          product.queue(arguments, stream);
        },
        &shown, room.c, room.c_bytes);
  }

  template <typename V>
  void set_desc(int attribute, V value) const {
    library_->check(library_->api.set_desc(desc_.get(), attribute, &value, sizeof value), "describing a product");
  }

  bool scaled() const { return spec_.a_format != Fp8Format::none; }
  void set_scales(const float* a, const float* b) const {
    set_desc(kDescScaleA, static_cast<const void*>(b));
    set_desc(kDescScaleB, static_cast<const void*>(a));
  }
  void set_scales(const float* both) const { set_scales(both, both); }

  // `rows` stored rows of `length` elements, `step` elements apart.
  void describe(Owned<Layout>& layout, int type, int64_t rows, int64_t length, int64_t step) const {
    const int status = library_->api.create_layout(layout.fresh(library_->api.destroy_layout), type,
                                                   static_cast<uint64_t>(length), static_cast<uint64_t>(rows), step);
    library_->check(status, "describing an operand");
  }

  // Whether the sum over the depth is in one part, or in parts that are added in a separate step.
  bool fixed_order(const Algorithm& algorithm) const {
    uint32_t reduction = kReduceNone;
    size_t written = 0;
    const int status =
        library_->api.algorithm_get(&algorithm, kAlgorithmReduction, &reduction, sizeof reduction, &written);
    return status == kSuccess && (reduction == kReduceNone || reduction == kReduceInWorkspace);
  }

  void queue(const CudaProductArguments& arguments, CudaStream stream) const {
    const std::lock_guard lock(mutex_);  // the pointers to bias and scales are part of the description
    const float alpha = 1, beta = spec_.matmul.addend ? 1.0f : 0.0f;
    if (spec_.matmul.bias) set_desc(kDescBiasPointer, arguments.bias);
    if (scaled()) set_scales(arguments.a_scale, arguments.b_scale);
    const void* const addend = spec_.matmul.addend ? arguments.addend : arguments.c;
    library_->check(library_->api.matmul(library_->handle, desc_.get(), &alpha, arguments.b, a_.get(), arguments.a,
                                         b_.get(), &beta, addend, c_.get(), arguments.c, c_.get(), &chosen_.algorithm,
                                         arguments.workspace, static_cast<size_t>(chosen_.workspace), stream),
                    "a product");
  }

  std::shared_ptr<const Library> library_;
  CudaProductSpec spec_;
  Owned<Desc> desc_;
  Owned<Layout> a_, b_, c_;
  std::vector<Choice> choices_;
  Choice chosen_;
  mutable std::mutex mutex_;
};

class CublasLt final : public CudaBlas {
 public:
  explicit CublasLt(const Api& api) : library_(std::make_shared<Library>(api)) {}

  CudaProductOffer prepare(const CudaProductSpec& spec, int64_t workspace) override {
    const MatmulSpec& m = spec.matmul;
    HR_CHECK(std::has_single_bit(static_cast<uint64_t>(spec.alignment)) && workspace >= 0,
             "a product aligned to {} bytes in {} bytes of workspace", spec.alignment, workspace);
    HR_CHECK((spec.a_format == Fp8Format::none) == (spec.b_format == Fp8Format::none), "codes are multiplied by codes");
    if (m.size.rows < 1 || m.size.cols < 1 || m.size.depth < 1) return {nullptr, "the product is empty"};
    const std::lock_guard lock(mutex_);
    const Key key{m.size.rows,   m.size.cols,    m.size.depth,   m.operand,     m.multiply,    m.result,
                  m.bias,        m.a_transposed, m.b_transposed, m.addend,      spec.a_step(), spec.b_step(),
                  spec.c_step(), workspace,      spec.alignment, spec.a_format, spec.b_format};
    const auto [at, added] = products_.try_emplace(key);
    if (added) at->second = make(spec, workspace);
    return at->second;
  }

  std::string name() const override { return library_->name(); }
  std::string remark() const override {
    const std::lock_guard lock(mutex_);
    return failures_.remark("products", "cuBLASLt");
  }

 private:
  using Key = std::tuple<int64_t, int64_t, int64_t, DType, Multiply, DType, bool, bool, bool, bool, int64_t, int64_t,
                         int64_t, int64_t, int64_t, Fp8Format, Fp8Format>;

  CudaProductOffer make(const CudaProductSpec& spec, int64_t workspace) {
    try {
      auto product = std::make_shared<LtProduct>(library_, spec);
      std::string refusal = product->choose(workspace);
      if (!refusal.empty()) return {nullptr, std::move(refusal)};
      product->try_out();
      product->rehearse();
      return {std::move(product), {}};
    } catch (const Error& failure) {
      const auto& [rows, cols, depth] = spec.matmul.size;
      failures_.add(
          fmt::format("{}, {} x {} x {} of {}", failure.what(), rows, cols, depth, dtype_name(spec.matmul.operand)));
      return {nullptr, failure.what()};
    }
  }

  std::shared_ptr<const Library> library_;
  mutable std::mutex mutex_;
  std::map<Key, CudaProductOffer> products_;
  CudaLibraryFailures failures_;
};

}  // namespace

std::unique_ptr<CudaBlas> make_cublaslt(const Api& api) { return std::make_unique<CublasLt>(api); }

std::unique_ptr<CudaBlas> open_cublaslt(std::string& reason) {
  const std::optional<Api> api = cublaslt::open_library(reason);
  if (!api) return nullptr;
  try {
    return make_cublaslt(*api);
  } catch (const Error& refusal) {
    reason = refusal.what();
    return nullptr;
  }
}

}  // namespace headroom
