#include "ops/cuda/cudnn.h"

#include <cudnn_frontend.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <map>
#include <mutex>
#include <span>
#include <stdexcept>
#include <tuple>

#include "base/error.h"
#include "ops/cuda/cudnn/graphs.h"
#include "ops/cuda/library.h"
#include "ops/cuda/rehearsal.h"

namespace cudnn_frontend {
void* cudnn_dlhandle = nullptr;  // where the frontend looks for the library's functions
}

namespace headroom {
namespace {

namespace fe = cudnn_frontend;
using cudnn::Graph;

// Device memory in the order of cudnn::Operand.
std::array<void*, 5> operands_of(const cuda::AttentionArrays& arrays) {
  return {const_cast<void*>(arrays.q), const_cast<void*>(arrays.k), const_cast<void*>(arrays.v), arrays.o, arrays.lse};
}
std::array<void*, 9> operands_of(const cuda::AttentionGradArrays& arrays) {
  return {const_cast<void*>(arrays.q),
          const_cast<void*>(arrays.k),
          const_cast<void*>(arrays.v),
          const_cast<void*>(arrays.o),
          const_cast<float*>(arrays.lse),
          const_cast<void*>(arrays.grad_o),
          arrays.dq,
          arrays.dk,
          arrays.dv};
}

// The frontend's error for `call`, which returns it, in one line; empty on success. `call` throws when an older library
// does not have a function.
template <typename Call>
std::string words_against(const Call& call) {
  std::string words;
  try {
    fe::error_t error = call();
    if (error.is_good()) return {};
    words = error.get_message();
  } catch (const std::runtime_error& error) {
    words = error.what();
  }
  for (char& c : words)
    if (c == '\n') c = ' ';
  constexpr size_t kMost = 400;
  if (words.size() > kMost) words = words.substr(0, kMost) + "...";
  return words.empty() ? "no reason given" : words;
}

// The library and the device for which its plans are made; lives as long as any of its calls.
class Library {
 public:
  explicit Library(int capability) : capability_(capability) {}
  ~Library() {
    if (handle_) fe::detail::destroy_handle(handle_);
  }
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;

  // Uses the calling thread's current device, or a described one; returns the reason when the library does not know it.
  std::string take_device() {
    const cudnnStatus_t status = fe::detail::create_handle(&handle_);
    if (status == CUDNN_STATUS_SUCCESS) return {};
    handle_ = nullptr;
    return fmt::format("{} cannot be used on this device: {}", name(), fe::detail::get_error_string(status));
  }
  std::string take_device(const std::string& properties) {
    properties_ = std::make_shared<fe::DeviceProperties>();
    const std::string words = words_against(
        [&] { return properties_->deserialize(std::vector<uint8_t>(properties.begin(), properties.end())); });
    return words.empty() ? words : fmt::format("{}: {}", name(), words);
  }

  int capability() const { return capability_; }
  bool has_device() const { return handle_ != nullptr; }  // false: only a description of one
  std::string name() const { return "cuDNN " + cudnn_version_text(fe::detail::get_backend_version()); }

  // Chooses and compiles a plan of the graph; returns the reason when none fits in `workspace` bytes.
  std::string plan(Graph& graph, int64_t workspace, int64_t& needed) const {
    std::string words = words_against([&] { return plan_within(graph, workspace, needed); });
    if (words.empty() && needed > workspace)
      words = fmt::format("wants {} bytes of workspace, not {}", needed, workspace);
    return words.empty() ? words : fmt::format("{}: {}", name(), words);
  }

  // Queues the graph's plan with operands in the order of their numbers. Calls take turns, because the handle has one
  // stream.
  void queue(const Graph& graph, std::span<void*> operands, void* workspace, CudaStream stream) const {
    HR_CHECK(handle_, "{} has no device to run on", name());
    const std::lock_guard lock(mutex_);
    const cudnnStatus_t status = fe::detail::set_stream(handle_, stream);
    if (status != CUDNN_STATUS_SUCCESS) fail(fe::detail::get_error_string(status));
    const std::string words = words_against(
        [&] { return graph.execute(handle_, operands.data(), static_cast<int>(operands.size()), workspace); });
    if (!words.empty()) fail(words);
  }

 private:
  fe::error_t plan_within(Graph& graph, int64_t workspace, int64_t& needed) const {
    if (properties_) graph.set_device_properties(properties_);
    fe::error_t error = graph.validate();
    if (error.is_good()) error = properties_ ? graph.build_operation_graph() : graph.build_operation_graph(handle_);
    if (error.is_good()) error = graph.create_execution_plans({fe::HeurMode_t::A});
    graph.deselect_workspace_greater_than(workspace);
    if (error.is_good()) error = graph.check_support();
    if (error.is_good()) error = graph.build_plans();
    if (error.is_good()) error = graph.get_workspace_size(needed);
    return error;
  }
  [[noreturn]] void fail(const std::string& words) const {
    throw Error(ErrorKind::run, fmt::format("{}: attention failed: {}", name(), words),
                "see the driver's messages (dmesg), or run without it: HEADROOM_CUDA_WITHOUT=cudnn");
  }

  int capability_;
  cudnnHandle_t handle_ = nullptr;
  std::shared_ptr<fe::DeviceProperties> properties_;
  mutable std::mutex mutex_;
};

template <typename Arrays>
class CudnnCall final : public CudaDnnCall<Arrays> {
 public:
  CudnnCall(std::shared_ptr<const Library> library, const AttentionShape& shape)
      : library_(std::move(library)),
        graph_(cudnn::graph_of<Arrays>(shape, library_->capability())),
        operand_bytes_(shape.batch * std::max(shape.queries, shape.keys) * shape.heads * shape.dim * 2) {}

  std::string plan(int64_t workspace) {
    std::string refusal = library_->plan(*graph_, workspace, workspace_);
    if (!refusal.empty()) return refusal;
    const std::vector<int64_t> operands = graph_->get_variant_pack_uids_sorted();
    bool in_order = operands.size() == operands_of(Arrays{}).size();
    for (size_t i = 0; in_order && i < operands.size(); ++i) in_order = operands[i] == static_cast<int64_t>(i) + 1;
    return in_order ? std::string() : library_->name() + " asks for other operands";
  }

  int64_t workspace_bytes() const override { return workspace_; }

  void run(const Arrays& arrays, void* workspace, CudaStream stream) const override {
    if (launch_mode() == LaunchMode::load) return;
    auto operands = operands_of(arrays);
    library_->queue(*graph_, operands, workspace, stream);
  }
  // Loads its code. Throws Error(run) when the library or the driver refuses.
  void rehearse() const {
    // The same memory is the workspace and every operand, because the library may clear them.
    cuda::rehearse_in(std::max(workspace_, operand_bytes_), [this](void* at, CudaStream recording) {
      auto operands = operands_of(Arrays{});
      operands.fill(at);
      library_->queue(*graph_, operands, at, recording);
    });
  }

 private:
  std::shared_ptr<const Library> library_;
  std::unique_ptr<Graph> graph_;
  int64_t operand_bytes_;  // bytes of the largest operand
  int64_t workspace_ = 0;
};

// All prepared calls of one kind, each made once.
template <typename Arrays>
class Calls {
 public:
  using Offer = CudaLibraryOffer<CudaDnnCall<Arrays>>;

  Offer prepare(const std::shared_ptr<const Library>& library, const AttentionShape& shape, int64_t workspace) {
    if (shape.softcap > 0) return {nullptr, "soft-capped scores"};
    const std::lock_guard lock(mutex_);
    const Key key{shape.batch,  shape.queries, shape.keys,  shape.heads,     shape.kv_heads, shape.dim,
                  shape.causal, shape.window,  shape.scale, shape.any_order, workspace};
    const auto [at, added] = offers_.try_emplace(key);
    if (!added) return at->second;
    at->second = make(library, shape, workspace);
    return at->second;
  }
  // `what` names the calls of this kind in messages.
  std::string remark(const std::string& what) const {
    const std::lock_guard lock(mutex_);
    return failures_.remark(what, "cuDNN");
  }

 private:
  Offer make(const std::shared_ptr<const Library>& library, const AttentionShape& shape, int64_t workspace) {
    auto call = std::make_shared<CudnnCall<Arrays>>(library, shape);
    std::string refusal = call->plan(workspace);
    if (!refusal.empty()) return {nullptr, std::move(refusal)};
    try {
      if (library->has_device()) call->rehearse();
    } catch (const Error& failure) {
      failures_.add(fmt::format("{}, {} x {} queries of {} heads of {}", failure.what(), shape.batch, shape.queries,
                                shape.heads, shape.dim));
      return {nullptr, failure.what()};
    }
    return {std::move(call), {}};
  }

  using Key = std::tuple<int64_t, int64_t, int64_t, int64_t, int64_t, int64_t, bool, int64_t, double, bool, int64_t>;

  mutable std::mutex mutex_;
  std::map<Key, Offer> offers_;
  CudaLibraryFailures failures_;
};

class Cudnn final : public CudaDnn {
 public:
  explicit Cudnn(std::shared_ptr<const Library> library) : library_(std::move(library)) {}

  CudaAttentionOffer attention(const AttentionShape& shape, int64_t workspace) override {
    return forward_.prepare(library_, shape, workspace);
  }
  CudaAttentionGradOffer attention_grad(const AttentionShape& shape, int64_t workspace) override {
    if (!shape.any_order) asked_for_order_ = true;
    return gradient_.prepare(library_, shape, workspace);
  }
  std::string name() const override { return library_->name(); }
  std::string remark() const override {
    std::string text =
        cudnn_gradient_remark(fe::detail::get_backend_version(), library_->capability(), asked_for_order_);
    for (const std::string& failed : {forward_.remark("attention"), gradient_.remark("attention's gradient")})
      if (!failed.empty()) text += (text.empty() ? "" : "; ") + failed;
    return text;
  }

 private:
  std::shared_ptr<const Library> library_;
  Calls<cuda::AttentionArrays> forward_;
  Calls<cuda::AttentionGradArrays> gradient_;
  std::atomic<bool> asked_for_order_{false};  // whether a gradient in a fixed order was asked for
};

}  // namespace

std::unique_ptr<CudaDnn> open_cudnn(int capability, std::string& reason, const CudnnOptions& options) {
  if (!fe::cudnn_dlhandle) {
    // cuDNN needs this compiler; opening it here helps if the loader would not find it.
    constexpr const char* kCompilers[] = {"libnvrtc.so.13", "libnvrtc.so.12"};
    const char* const names[] = {options.library.c_str()};
    if (cuda::library_wanted(options.library)) cuda::open_library(kCompilers, reason);
    fe::cudnn_dlhandle = cuda::open_library(names, reason);
    if (!fe::cudnn_dlhandle) return nullptr;
    // The gradient has two deterministic algorithms. Unless this variable limits it, the frontend takes the one whose
    // workspace grows with the square of the length.
    ::setenv("CUDNN_FRONTEND_ATTN_DP_WORKSPACE_LIMIT", "0", 0);
  }
  auto library = std::make_shared<Library>(capability);
  try {
    reason = options.device.empty() ? library->take_device() : library->take_device(options.device);
  } catch (const std::runtime_error& lacking) {  // the library does not have a function that the frontend needs
    reason = lacking.what();
  }
  return reason.empty() ? std::make_unique<Cudnn>(std::move(library)) : nullptr;
}

}  // namespace headroom
