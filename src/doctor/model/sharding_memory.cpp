#include "doctor/model/sharding_memory.h"

#include <algorithm>

#include "base/error.h"

namespace headroom::doctor {
namespace {

// A DeepSpeed buffer in elements: the configuration's value, or the default.
double buffer(const TrainSettings& s, const char* key, double fallback) {
  const auto it = s.buffers.find(key);
  return it == s.buffers.end() || it->second < 0 ? fallback : static_cast<double>(it->second);
}

void divide(Bytes& b, double by) {
  if (by <= 1) return;
  b.bytes /= by;
  b.how += fmt::format(" / {:.0f}", by);
}

// FSDP: the current unit, the prefetched one and the root unit (tables), each with its gradient.
void fsdp(ModelStates& m, const ModelShape& shape, const TrainSettings& s, double trained) {
  const double width = s.autocast ? s.compute_width : s.weight_width;
  const double units = (1 + s.prefetched_units) * shape.layer_parameters;
  const double gathered = units + shape.embedding_parameters;
  const bool gathers = s.sharding == Sharding::zero3 || s.sharding == Sharding::hybrid;
  const double share = shape.parameters > 0 ? trained / shape.parameters : 0;  // share of a unit that gets gradients
  const double whole = gathers ? gathered : s.sharding == Sharding::zero2 ? shape.parameters : 0;
  m.gathered = {width * (whole + gathered * std::min(1.0, share)),
                fmt::format("{:.0f} gathered parameters and their gradients x {} B", whole, width)};
}

void deepspeed_buffers(ModelStates& m, const ModelShape& shape, const TrainSettings& s, int stage) {
  const double elements = shape.parameters;
  if (stage == 3) {
    const double live = std::min({elements, buffer(s, "stage3_max_live_parameters", 1e9),
                                  2 * shape.layer_parameters + buffer(s, "stage3_prefetch_bucket_size", 5e7)});
    const double reduce = std::min(elements, buffer(s, "reduce_bucket_size", 5e8));
    m.gathered = {s.weight_width * (live + shape.embedding_parameters / 2 + reduce),
                  fmt::format("{:.0f} live parameters + reduce bucket {:.0f}, x {} B", live, reduce, s.weight_width)};
    return;
  }
  const double reduce = std::min(elements, buffer(s, "reduce_bucket_size", 5e8));
  const double gather = std::min(elements, buffer(s, "allgather_bucket_size", 5e8));
  const double buckets = stage >= 2 ? 2 * reduce : stage == 1 ? reduce + gather / 2 : reduce;
  m.gathered = {s.weight_width * buckets, fmt::format("buckets of {:.0f} elements x {} B", buckets, s.weight_width)};
}

int stage_of(Sharding sharding) {
  switch (sharding) {
    case Sharding::zero1:
      return 1;
    case Sharding::zero2:
      return 2;
    case Sharding::zero3:
    case Sharding::hybrid:
      return 3;
    default:
      return 0;
  }
}

void offload(ModelStates& m, const TrainSettings& s) {
  const auto move = [&](Bytes& b, Offload where) {
    (where == Offload::nvme ? m.disk : m.host) += b.bytes;
    b.bytes = 0;
    b.how += ", offloaded";
  };
  if (s.offload_optimizer != Offload::none) {
    move(m.states, s.offload_optimizer);
    move(m.masters, s.offload_optimizer);
    m.host += m.gradients.bytes;  // a pinned copy that the step on the host reads
    m.step.bytes = 0;
  }
  if (s.offload_parameters != Offload::none) {
    move(m.weights, s.offload_parameters);
    if (!s.deepspeed) {  // FSDP's CPU offload moves gradients and states too
      move(m.gradients, Offload::cpu);
      move(m.states, Offload::cpu);
      m.step.bytes = 0;
    }
  }
}

}  // namespace

ModelStates model_states(const ModelShape& shape, const TrainSettings& s) {
  ModelStates m;
  const double trained = trainable_parameters(shape, s);
  const OptimizerBytes optimizer = optimizer_bytes(shape, s, trained);
  const int stage = stage_of(s.sharding);
  m.weights = base_weights(shape, s);
  if (s.lora) {
    m.weights.bytes += trained * s.adapter_width;
    m.weights.how += fmt::format(" + adapters {:.0f} x {} B", trained, s.adapter_width);
  }
  const double gradient_width = s.lora ? s.adapter_width : s.weight_width;
  m.gradients = {trained * gradient_width, fmt::format("{:.0f} x {} B", trained, gradient_width)};
  if (s.optimizer_in_backward) m.gradients = {shape.layer_parameters * gradient_width, "one layer at a time"};
  m.states = optimizer.states;
  m.step = optimizer.step;
  if (s.deepspeed && s.weight_width < 4)
    m.masters = {trained * 4, fmt::format("{:.0f} float32 masters x 4 B", trained)};
  const double n = s.world;
  if (s.sharding == Sharding::ddp && s.world > 1)
    m.gathered = {m.gradients.bytes, "DDP's buckets: a copy of the gradients"};
  if (stage >= 1) {
    divide(m.states, n);
    divide(m.masters, n);
    divide(m.step, n);
  }
  if (stage >= 2) divide(m.gradients, n);
  if (stage >= 3) divide(m.weights, n);
  if (s.deepspeed)
    deepspeed_buffers(m, shape, s, stage);
  else if (stage >= 2 && n > 1)
    fsdp(m, shape, s, trained);
  if (!s.deepspeed && stage == 2 && n > 1) divide(m.weights, n);  // the full copy is counted in `gathered`
  offload(m, s);
  return m;
}

}  // namespace headroom::doctor
