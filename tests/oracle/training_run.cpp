#include "training_run.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/bfloat16.h"
#include "base/error.h"
#include "base/threads.h"
#include "device/device.h"
#include "passes/precisions.h"
#include "train/schedule.h"
#include "weights/adapter.h"
#include "weights/stored_floats.h"
#include "weights/weights.h"

namespace headroom::test {
namespace {

constexpr int64_t kPlenty = int64_t{1} << 30;

class WatchedKernel final : public DeviceKernel {
 public:
  WatchedKernel(std::string_view name, std::unique_ptr<DeviceKernel> kernel) : op(name), inner(std::move(kernel)) {}
  std::string op;
  std::unique_ptr<DeviceKernel> inner;
};

}  // namespace

// Rows of the batch in order; after the last row comes padding.
class TrainingRun::BatchPort final : public HostPort {
 public:
  explicit BatchPort(const GoldenCase& golden) : golden_(golden) {}
  void next_batch(int64_t trip, std::span<int32_t> ids, std::span<int32_t> labels, int64_t batch,
                  int64_t seq) override {
    std::fill(ids.begin(), ids.end(), 0);
    std::fill(labels.begin(), labels.end(), -100);
    for (int64_t i = 0; i < batch && trip * batch + i < golden_.rows(); ++i) {
      const size_t row = static_cast<size_t>(trip * batch + i);
      std::copy(golden_.ids[row].begin(), golden_.ids[row].end(), ids.begin() + i * seq);
      std::copy(golden_.labels[row].begin(), golden_.labels[row].end(), labels.begin() + i * seq);
    }
  }
  void next_types(int64_t trip, std::span<int32_t> types, int64_t batch, int64_t seq) override {
    std::fill(types.begin(), types.end(), 0);
    if (golden_.types.empty()) return;
    for (int64_t i = 0; i < batch && trip * batch + i < golden_.rows(); ++i)
      std::copy_n(golden_.types.at(static_cast<size_t>(trip * batch + i)).begin(), seq, types.begin() + i * seq);
  }
  void next_lengths(int64_t trip, std::span<int32_t> lengths, int64_t batch, int64_t seq) override {
    for (int64_t i = 0; i < batch; ++i) {
      const auto row = static_cast<size_t>(trip * batch + i);
      lengths[static_cast<size_t>(i)] = static_cast<int32_t>(row < golden_.lengths.size() ? golden_.lengths[row] : seq);
    }
  }
  void next_segments(int64_t trip, std::span<int32_t> starts, int64_t batch, int64_t seq) override {
    for (int64_t i = 0; i < batch && trip * batch + i < golden_.rows(); ++i)
      std::copy_n(golden_.starts.at(static_cast<size_t>(trip * batch + i)).begin(), seq, starts.begin() + i * seq);
  }

 private:
  const GoldenCase& golden_;
};

// The CPU, with a copy of each gradient taken directly before the update that consumes it.
class TrainingRun::WatchedDevice final : public Device {
 public:
  explicit WatchedDevice(const DeviceFacts& facts) : inner_(make_cpu_device(facts)) {}
  std::string_view name() const override { return inner_->name(); }
  std::byte* reserve_arena(Tier tier, int64_t bytes) override {
    std::byte* const arena = inner_->reserve_arena(tier, bytes);
    std::fill_n(arena, bytes, std::byte{0xff});  // NaN in every float type: nothing may rely on zeroed memory
    return arena;
  }
  bool host_visible() const override { return true; }
  std::unique_ptr<DeviceKernel> prepare(const KernelSpec& spec) override {
    return std::make_unique<WatchedKernel>(spec.op, inner_->prepare(spec));
  }
  void launch(const DeviceKernel& kernel, const KernelCall& call, StreamId stream) override {
    const auto& watched = static_cast<const WatchedKernel&>(kernel);
    if (watched.op == "adamw") {
      const float* gradient = call.inputs[1].as<float>();
      gradients[call.inputs[0].data].assign(gradient, gradient + call.inputs[1].count());
    }
    inner_->launch(*watched.inner, call, stream);
  }
  void copy(std::byte* to, const std::byte* from, int64_t bytes, StreamId stream) override {
    inner_->copy(to, from, bytes, stream);
  }
  StreamId create_stream(Tier below) override { return inner_->create_stream(below); }
  EventId create_event() override { return inner_->create_event(); }
  void record(EventId event, StreamId stream) override { inner_->record(event, stream); }
  void wait(StreamId stream, EventId event) override { inner_->wait(stream, event); }
  void synchronize(StreamId stream) override { inner_->synchronize(stream); }

  std::map<const void*, std::vector<float>> gradients;  // by the weight's address

 private:
  std::unique_ptr<Device> inner_;
};

TrainOptions plain_options(const GoldenCase& golden) {
  TrainOptions options;
  options.model.path = golden.folder / "model";
  options.data.global_batch_size = golden.rows();
  options.data.micro_batch_size = golden.rows();
  options.data.max_seq_length = golden.row_length();
  options.techniques.max_grad_norm = 0;
  options.schedule.learning_rate = 0;
  options.machine.memory = kPlenty;
  options.machine.threads = 1;
  options.machine.profile = "cpu-avx2";
  options.techniques.pins = {{"fused-optimizer", "off"}, {"recompute", "off"}, {"chunked-loss", "off"}};
  return options;
}

TrainingRun::TrainingRun(const GoldenCase& golden, const TrainOptions& options, const std::filesystem::path& adapter,
                         const std::function<void(const PlanRequest&, Plan&)>& change)
    : golden_(golden), options_(options) {
  const Precision* const precision = find_precision(options.techniques.precision);
  if (precision && precision->scales_loss()) scaler_ = LossScaler(options.techniques.fp16);
  scaling_ = scaler_.initial();
  PlanRequest request = training_request(options, golden.model);
  request.facts = cpu_facts(options.machine.threads);  // all instruction sets that this process may use
  set_threads(request.facts.threads);
  result_ = search_training_plan(request);
  HR_CHECK(result_.plan.feasible, "the plan of {} does not fit {} bytes", golden.folder.string(),
           options.machine.memory);
  if (change) change(request, result_.plan);
  port_ = std::make_unique<BatchPort>(golden);
  device_ = std::make_unique<WatchedDevice>(plan().facts);
  executor_ = std::make_unique<Executor>(plan(), *device_, port_.get());
  read_weights(*executor_, golden.model.spec, SafetensorsSet::open(golden.model.directory));
  if (options.techniques.lora.rank > 0 && adapter.empty()) init_adapter(*executor_, options.seed);
  if (!adapter.empty()) load_adapter(*executor_, options.techniques.lora, adapter);
  executor_->run("load", {});
  for (const PersistentTensor& tensor : plan().tensors)
    if (tensor.role == Role::optimizer) {
      const TensorView view = executor_->tensor(tensor.name);
      std::fill_n(view.as<float>(), view.count(), 0.0f);
    }
}

TrainingRun::~TrainingRun() = default;

std::vector<float> TrainingRun::parameter(const std::string& name) {
  const std::string prefix = "base_model.model.";
  const bool adapted = is_lora_name(name) || !name.starts_with(prefix);
  const TensorView view = executor_->tensor(adapted ? name : name.substr(prefix.size()));
  if (view.dtype != DType::f32) {
    std::vector<float> values(static_cast<size_t>(view.count()));
    widen_floats(stored_as(view.dtype), view.as<std::byte>(), values);
    return values;
  }
  return {view.as<float>(), view.as<float>() + view.count()};
}

void TrainingRun::save_adapter(const std::filesystem::path& directory) {
  write_adapter(*executor_, golden_.model, options_.techniques.lora, directory);
}

void TrainingRun::move(const std::string& name, const std::vector<float>& direction, double factor) {
  float* const values = executor_->tensor(name).as<float>();
  for (size_t i = 0; i < direction.size(); ++i)
    values[i] += static_cast<float>(factor * static_cast<double>(direction[i]));
}

std::vector<std::byte> TrainingRun::states() {
  std::vector<std::byte> bytes;
  for (const PersistentTensor& tensor : plan().tensors) {
    if (tensor.role != Role::optimizer) continue;
    const TensorView view = executor_->tensor(tensor.name);
    bytes.insert(bytes.end(), view.as<std::byte>(), view.as<std::byte>() + view.count() * dtype_bytes(view.dtype));
  }
  return bytes;
}

void TrainingRun::round_weights() {
  for (const PersistentTensor& tensor : plan().tensors) {
    if (tensor.role != Role::parameter) continue;
    const TensorView view = executor_->tensor(tensor.name);
    for (int64_t i = 0; i < view.count(); ++i) view.as<float>()[i] = static_cast<float>(bfloat16(view.as<float>()[i]));
  }
}

Gradients TrainingRun::named(const std::map<const void*, std::vector<float>>& by_weight) const {
  Gradients out;
  for (const PersistentTensor& tensor : plan().tensors)
    if (const auto at = by_weight.find(executor_->tensor(tensor.name).data); at != by_weight.end())
      out[tensor.name] = at->second;
  return out;
}

StepOutcome TrainingRun::step() {
  ++steps_;
  const StepScalars scalars = step_scalars(options_, optimizer_settings(options_.optimizer),
                                           options_.schedule.learning_rate, steps_, golden_.targets, scaling_);
  std::copy(scalars.values().begin(), scalars.values().end(), executor_->tensor("hyper").as<float>());
  const Trips trips[] = {{"micro_batches", plan().choices.accumulation}};
  device_->gradients.clear();
  executor_->run("train_step", trips);
  const double* const sums = executor_->result("train_step", 0).as<double>();
  const double scale = scaling_.scale, norm = std::sqrt(*executor_->tensor("grad_sum_squares").as<double>()) / scale;
  for (auto& [place, gradient] : device_->gradients)
    for (float& value : gradient) value = static_cast<float>(value / scale);
  const bool skipped = scaler_.scales() && !std::isfinite(norm);
  scaler_.update(!skipped, scaling_);
  return {sums[0] / sums[1], sums[1], norm, named(device_->gradients), scale, skipped};
}

double TrainingRun::evaluate() {
  const Trips trips[] = {{"eval_batches", plan().choices.accumulation}};
  executor_->run("evaluate", trips);
  const double* const sums = executor_->result("evaluate", 0).as<double>();
  return sums[0] / sums[1];
}

}  // namespace headroom::test
