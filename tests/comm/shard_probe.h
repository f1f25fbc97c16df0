// A small Llama, planned and trained as one process or as one of several that share its weights. Every rank can compute
// all weights and rows by formula, so that each can also train alone and compare.
#pragma once

#include <cmath>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "comm/collective_port.h"
#include "ir/rewrite.h"
#include "ir/verify.h"
#include "memory/arenas.h"
#include "models/decoder.h"
#include "ops/update/hyper.h"
#include "passes/shard.h"
#include "planner/emit.h"
#include "planner/pipeline.h"
#include "planner/techniques/chunked_loss.h"
#include "planner/techniques/micro_batch.h"
#include "planner/techniques/precision.h"
#include "planner/techniques/recompute.h"
#include "runtime/executor.h"

namespace headroom::shard_probe {

constexpr int64_t kSeq = 12;

inline Candidate one_sequence() {
  Candidate candidate;
  candidate[techniques::micro_batch].count = 1;
  return candidate;
}

// bf16-mixed with copies of the weights, or with weights rounded at each use.
inline Setting mixed(bool copies) { return {.count = 1, .form = static_cast<uint8_t>(copies ? kWeightCopies : 0)}; }

struct Options {
  bool tied = false;
  std::string precision = "32-true";
  Candidate candidate = one_sequence();  // of 32-true or bf16-mixed, by `precision`
  bool clips = true;
  int64_t layers = 1;
};

inline ModelSpec tiny_llama(const Options& options) {
  return read_model_spec(
      HfConfig::parse(fmt::format(R"({{"model_type": "llama", "architectures": ["LlamaForCausalLM"], "vocab_size": 64,
        "hidden_size": 32, "intermediate_size": 80, "num_hidden_layers": {}, "num_attention_heads": 4,
        "num_key_value_heads": 2, "max_position_embeddings": 64, "rms_norm_eps": 1e-5,
        "tie_word_embeddings": {}}})",
                                  options.layers, options.tied),
                      "config.json"));
}

struct Planned {
  Graph graph;
  Plan plan;
};

// The planner's steps plus one pass; `parts` = 1 gives the plain plan.
inline Planned make_plan(const Options& options, int32_t parts, const DeviceFacts& facts) {
  PlanRequest request;
  request.forward = build_training_forward(tiny_llama(options), 4, kSeq);
  request.seq_length = kSeq;
  set_precision(request, options.precision);
  request.clips = options.clips;
  request.staging_bytes = 4096;
  request.facts = facts;
  request.profile = load_profile("cpu-avx2");
  Planned out;
  out.graph = expand(assemble_training(request, options.candidate), request, options.candidate, true);
  run_pass(kShard, out.graph, true, nullptr, [&](Graph& graph) { shard(graph, parts); });
  compact(out.graph);
  verify_or_throw(out.graph, "compact");
  const Bindings bindings = out.graph.bounds();
  const Liveness liveness = analyze_liveness(out.graph, bindings, facts);
  out.plan.facts = facts;
  emit_programs(out.graph, bindings, liveness, assign_arenas(liveness), request, out.plan);
  return out;
}

inline int64_t persistent_bytes(const Plan& plan, Role role) {
  int64_t bytes = 0;
  for (const PersistentTensor& tensor : plan.tensors)
    if (tensor.role == role) bytes += storage_bytes(tensor.place.type);
  return bytes;
}

inline int64_t training_bytes(const Plan& plan) {
  return persistent_bytes(plan, Role::parameter) + persistent_bytes(plan, Role::optimizer);
}

// In [-1, 1), by a name and a number.
inline double noise(std::string_view name, uint64_t index) {
  uint64_t h = 14695981039346656037u;
  for (char c : name) h = (h ^ static_cast<unsigned char>(c)) * 1099511628211u;
  h += (index + 1) * 0x9E3779B97F4A7C15u;
  h = (h ^ (h >> 30)) * 0xBF58476D1CE4E5B9u;
  h = (h ^ (h >> 27)) * 0x94D049BB133111EBu;
  h ^= h >> 31;
  return static_cast<double>(h >> 11) / 4503599627370496.0 - 1.0;
}

// Row r of step s's global batch is row s * batch + r of an endless text; a rank reads its part of each batch.
class ProbeHost final : public HostPort {
 public:
  ProbeHost(int64_t batch, int64_t first_row) : batch_(batch), first_row_(first_row) {}
  void start_step(int64_t step) { step_ = step; }
  void next_batch(int64_t trip, std::span<int32_t> ids, std::span<int32_t> labels, int64_t rows, int64_t seq) override {
    for (int64_t r = 0; r < rows; ++r)
      for (int64_t t = 0; t < seq; ++t) {
        const int64_t row = step_ * batch_ + first_row_ + trip * rows + r;
        ids[static_cast<size_t>(r * seq + t)] = token(row, t);
        labels[static_cast<size_t>(r * seq + t)] = token(row, t);
      }
  }

 private:
  static int32_t token(int64_t row, int64_t position) {
    return static_cast<int32_t>((noise("text", static_cast<uint64_t>(row * 1000 + position)) + 1) * 32);
  }
  int64_t batch_, first_row_;
  int64_t step_ = 0;
};

// A training run on the CPU; `group` is empty for a run alone.
class Trainer {
 public:
  Trainer(const Planned& planned, ProcessGroup* group, int64_t batch, int64_t micro_batch)
      : planned_(planned),
        group_(group),
        batch_(batch),
        trips_(batch / ranks() / micro_batch),
        host_(batch, rank() * (batch / ranks())),
        port_(group ? std::make_unique<CollectivePort>(*group, host_) : nullptr),
        device_(make_cpu_device(planned.plan.facts)),
        executor_(planned.plan, *device_, port_ ? static_cast<HostPort*>(port_.get()) : &host_) {
    std::memset(executor_.arena().data(), 0xFF, executor_.arena().size());
    for (const Value& value : planned_.graph.values)
      if (value.persistent) fill(value);
    executor_.run("load", {});
  }

  // The loss of each step, then the loss of an evaluation.
  std::vector<double> train(int steps) {
    std::vector<double> losses;
    for (int step = 0; step < steps; ++step) {
      host_.start_step(step);
      set_hyper(step + 1);
      losses.push_back(loss_of("train_step", "micro_batches"));
      norms_.push_back(std::sqrt(executor_.tensor("grad_sum_squares").as<double>()[0]));
    }
    losses.push_back(loss_of("evaluate", "eval_batches"));
    return losses;
  }

  // Gradient norms of the steps so far.
  const std::vector<double>& norms() const { return norms_; }

  // A whole persistent f32 tensor. All ranks must call it together.
  std::vector<float> whole(const std::string& name) {
    const TensorView view = executor_.tensor(name);
    const Value& value = find(name);
    Type type = value.type;
    type.shard.reset();
    std::vector<float> out(static_cast<size_t>(element_count(concrete(type, {}).dims)));
    if (value.type.shard)
      group_->all_gather({view.as<const std::byte>(), static_cast<size_t>(view.count()) * sizeof(float)},
                         std::as_writable_bytes(std::span(out)));
    else
      std::memcpy(out.data(), view.data, out.size() * sizeof(float));
    return out;
  }

  // Names of the f32 weights and states.
  std::vector<std::string> trained_names() const {
    std::vector<std::string> names;
    for (const Value& value : planned_.graph.values)
      if (value.persistent && value.type.dtype == DType::f32 &&
          (value.role == Role::parameter || value.role == Role::optimizer))
        names.push_back(value.name);
    return names;
  }

  int64_t arena_high_water() const { return executor_.arena_high_water(); }

 private:
  // Of the global batch: labels are the ids, the loss shifts them by one position.
  double targets() const { return static_cast<double>(batch_ * (kSeq - 1)); }
  int ranks() const { return group_ ? group_->size() : 1; }
  int rank() const { return group_ ? group_->rank() : 0; }

  const Value& find(const std::string& name) const {
    for (const Value& value : planned_.graph.values)
      if (value.persistent && value.name == name) return value;
    throw InternalError("no " + name);
  }

  // Weights by formula, everything else zero; a shard's padding is zero.
  void fill(const Value& value) {
    const TensorView view = executor_.tensor(value.name);
    std::memset(view.data, 0, static_cast<size_t>(view.count() * dtype_bytes(view.dtype)));
    if (value.role != Role::parameter || value.type.dtype != DType::f32) return;
    Type type = value.type;
    type.shard.reset();
    const int64_t whole = element_count(concrete(type, {}).dims);
    const int64_t begin = value.type.shard ? rank() * view.count() : 0;
    for (int64_t i = 0; i < view.count() && begin + i < whole; ++i)
      view.as<float>()[i] = view.dims.size() == 1
                                ? static_cast<float>(1 + 0.1 * noise(value.name, static_cast<uint64_t>(i)))
                                : static_cast<float>(0.2 * noise(value.name, static_cast<uint64_t>(begin + i)));
  }

  void set_hyper(int step) {
    float* const hyper = executor_.tensor("hyper").as<float>();
    hyper[kLearningRate] = 1e-3f;
    hyper[kWeightDecay] = 0.1f;
    hyper[kBiasCorrection1] = static_cast<float>(1 - std::pow(0.9, step));
    hyper[kSqrtBiasCorrection2] = static_cast<float>(std::sqrt(1 - std::pow(0.999, step)));
    hyper[kLossScale] = static_cast<float>(1.0 / targets());
    hyper[kMaxGradNorm] = 0.25f;
  }

  double loss_of(std::string_view program, std::string_view loop) {
    const Trips trips[] = {{loop, trips_}};
    executor_.run(program, trips);
    const double* const sums = executor_.result(program, 0).as<double>();
    if (sums[1] != targets()) throw InternalError("the targets are not those of the batch");
    return sums[0] / sums[1];
  }

  const Planned& planned_;
  ProcessGroup* group_;
  int64_t batch_, trips_;
  ProbeHost host_;
  std::unique_ptr<CollectivePort> port_;
  std::unique_ptr<Device> device_;
  Executor executor_;
  std::vector<double> norms_;
};

}  // namespace headroom::shard_probe
