#include "doctor/model/train_estimate.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "doctor/model/activation_memory.h"
#include "doctor/model/device_overheads.h"
#include "doctor/model/sharding_memory.h"

namespace headroom::doctor {
namespace {

// A candidate for the peak.
struct Phase {
  std::string name;
  double lasting = 0, passing = 0;
  AllocatorLoad load{};
  AllocatorSlack held{};
  std::vector<Term> terms{};

  void last(const char* term, const Bytes& b) { add(term, b.bytes, b.how, lasting); }
  double total() const { return lasting + passing + held.likely; }
  void pass(const char* term, double bytes, const std::string& how) { add(term, bytes, how, passing); }

 private:
  void add(const char* term, double bytes, const std::string& how, double& sum) {
    if (bytes <= 0) return;
    sum += bytes;
    terms.push_back({term, whole_bytes(bytes), name, how});
  }
};

class Trainer {
 public:
  Trainer(const ModelShape& shape, const TrainSettings& s)
      : shape_(shape),
        s_(s),
        states_(model_states(shape, s)),
        activations_(network_activations(shape, s)),
        loss_(loss_bytes(shape, s)) {
    // Autocast keeps a 16-bit copy of every matrix until backward has used it.
    casts_ = s.autocast ? (shape.linear_parameters / s.tensor / s.pipeline +
                           (s.loss == LossKind::none ? 0 : shape.embedding_parameters)) *
                              s.compute_width
                        : 0;
    if (s.prepared_kbit && s.cast_products && s.loss != LossKind::none)  // only the head is a float32 matrix
      casts_ = static_cast<double>(shape.vocab) * static_cast<double>(shape.hidden) * s.compute_width;
    if (s.sharding == Sharding::zero3 || s.sharding == Sharding::hybrid || s.sharding == Sharding::zero2) casts_ = 0;
    const int64_t inner = shape.experts > 0 ? shape.moe_intermediate : shape.intermediate;
    const double widest = static_cast<double>(std::max(inner, shape.hidden)) * static_cast<double>(shape.hidden);
    // Quantisation-aware training keeps each matrix's rounded copy for its backward product.
    const double layers = static_cast<double>(std::max<int64_t>(1, shape.layers + shape.encoder_layers));
    if (s.fake_quantised)
      rounded_ = shape.linear_parameters / s.tensor / s.pipeline * s.weight_width /
                 (s.checkpointing == Checkpointing::full ? layers : 1);
    dequantized_ = s.quantization.empty() ? 0 : widest * s.compute_width;
    const LitGptTables tables = litgpt_tables(shape, s);
    dequantized_head_ = s.quantization.empty() ? 0 : tables.head * s.compute_width;
    // bitsandbytes' StableEmbedding is installed after the optimizer is created: its table's gradient is never used nor
    // freed.
    stale_gradient_ = {tables.stale * s.weight_width, "of the replaced token table, which no optimizer frees"};
    table_ = static_cast<double>(shape.vocab) * static_cast<double>(shape.hidden) / s.tensor;
  }

  // The forward pass is done, the loss at its peak, and no gradient of this step exists.
  Phase loss() const {
    Phase p{"backward"};
    states(p);
    if (s_.accumulation > 1 || s_.gradients_kept) p.last("gradients", states_.gradients);
    p.pass("activations", activations_.kept.bytes, activations_.kept.how);
    // A quantised matrix exists in 16 bits while it is used: one layer's after the loss, the head's during it.
    const double layer = activations_.recomputed + activations_.backward + dequantized_;
    if (loss_.peak + dequantized_head_ >= loss_.alive + layer) {
      p.pass("logits", loss_.peak, loss_.how);
      p.pass("temporaries", dequantized_head_, "the quantised head in 16 bits");
    } else {
      p.pass("logits", loss_.alive, loss_.how);
      p.pass("recomputed layer", activations_.recomputed, "one layer's activations again");
      p.pass("temporaries", activations_.backward, "gradients inside one layer");
      p.pass("temporaries", dequantized_, "a quantised matrix in 16 bits");
    }
    p.pass("autocast copies", casts_, "matrices in the compute width");
    p.pass("rounded weights", rounded_, "fake-quantised copies, kept for backward");
    p.pass("gathered parameters", states_.gathered.bytes, states_.gathered.how);
    if (s_.accumulation <= 1 && !s_.gradients_kept) p.load.gradients = small_gradients();
    p.load.activations = activations_.kept.bytes + activations_.recomputed;
    hold(p);
    return p;
  }

  // Backward at the first layer: its activations, and all gradients except the token table's, which comes last. A tied
  // table already has the head's gradient.
  Phase first_layer() const {
    Phase p{"backward"};
    states(p);
    Bytes gradients = states_.gradients;
    if (!s_.frozen() && !shape_.tied && !s_.gradients_kept && !s_.optimizer_in_backward && s_.accumulation <= 1)
      gradients.bytes = std::max(0.0, gradients.bytes * (1 - table_ * s_.tensor / std::max(1.0, shape_.parameters)));
    p.last("gradients", gradients);
    const double layers = static_cast<double>(shape_.layers + shape_.encoder_layers);
    const double layer = activations_.recomputed > 0 ? activations_.recomputed : activations_.kept.bytes / layers;
    p.pass("activations", layer, "of the first layer");
    p.pass("temporaries", activations_.backward, "gradients inside one layer");
    p.pass("temporaries", dequantized_, "a quantised matrix in 16 bits");
    return end_of_backward(std::move(p));
  }

  // The end of backward: every gradient, and a tied table's second one before it is added.
  Phase backward_end() const {
    Phase p{"backward"};
    states(p);
    p.last("gradients", states_.gradients);
    const double table = s_.frozen() || s_.gradients_kept ? 0 : table_ * s_.weight_width;
    p.pass("table gradient", shape_.tied ? table : 0, "the tied table's second gradient before it is added");
    p.pass("table gradient", stale_gradient_.bytes, "of this step, before it is added");
    return end_of_backward(std::move(p));
  }

  Phase optimizer_step() const {
    Phase p{"optimizer_step"};
    states(p);
    p.last("gradients", states_.gradients);
    p.pass("optimizer temporaries", states_.step.bytes, states_.step.how);
    if (s_.outputs_alive && s_.system == System::pytorch_script) p.pass("logits", loss_.alive, "kept by the caller");
    hold_freed(p);
    return p;
  }

  Phase evaluation() const {
    TrainSettings e = s_;
    e.batch = s_.eval_batch;
    Phase p{"eval"};
    states(p);
    if (s_.eval_batch <= 0) return p;
    const LayerActivations layer = layer_activations(shape_, e);
    p.pass("temporaries", layer.forward, "one layer without gradients");
    p.pass("logits", loss_bytes(shape_, e).evaluation, "logits of the evaluation batch with their float32 copies");
    p.pass("gathered parameters", states_.gathered.bytes, states_.gathered.how);
    hold(p);
    return p;
  }

  const ModelStates& model_states_of() const { return states_; }
  double offloaded_activations() const {
    if (!s_.activation_offload) return 0;
    TrainSettings on_device = s_;
    on_device.activation_offload = false;
    return network_activations(shape_, on_device).kept.bytes;
  }

 private:
  Phase end_of_backward(Phase p) const {
    if (s_.outputs_alive) p.pass("logits", loss_.alive, "the outputs, kept by the caller");
    p.pass("gathered parameters", states_.gathered.bytes, states_.gathered.how);
    hold_freed(p);
    return p;
  }
  // Gradients in pieces that a heap keeps: all except the tables'.
  double small_gradients() const {
    if (s_.frozen()) return states_.gradients.bytes;
    return std::max(0.0, states_.gradients.bytes - shape_.embedding_parameters * s_.weight_width);
  }
  void hold(Phase& p) const {
    p.load.lasting = p.lasting;
    p.load.passing = p.passing;
    if (s_.attention == AttentionKernel::eager) {
      const double layers = s_.checkpointing == Checkpointing::full ? 1 : static_cast<double>(shape_.layers);
      p.load.score_piece = s_.tokens() * s_.sequence * static_cast<double>(shape_.heads) * 4;
      p.load.scores = p.load.activations > 0 ? layers * p.load.score_piece : 0;
    }
    p.held = allocator_slack(p.load, s_);
  }
  // After backward a heap still holds most of the activations' memory.
  void hold_freed(Phase& p) const {
    p.load.gradients = 0;
    p.load.activations = 0;
    hold(p);
    if (!s_.cpu) return;
    const double freed = s_.fitted.heap_freed * (activations_.kept.bytes + activations_.recomputed);
    p.held.likely += freed;
    p.held.high += freed;
  }

  void states(Phase& p) const {
    p.last("weights", states_.weights);
    p.last("master weights", states_.masters);
    p.last("optimizer states", states_.states);
    p.last("gradients", stale_gradient_);
  }

  const ModelShape& shape_;
  const TrainSettings& s_;
  ModelStates states_;
  Activations activations_;
  LossBytes loss_;
  double rounded_ = 0, casts_ = 0, dequantized_ = 0, dequantized_head_ = 0, table_ = 0;
  Bytes stale_gradient_;
};

// Host memory of one process: the interpreter and its libraries, offloaded states, data loader workers, loading.
void host_memory(Estimate& e, const ModelShape& shape, const TrainSettings& s, const Trainer& trainer) {
  constexpr double kGi = 1073741824.0;
  const double libraries = 3 * kGi;  // torch with CUDA, transformers, and their caches
  const double offloaded = trainer.model_states_of().host + trainer.offloaded_activations();
  const double workers = s.workers * 0.5 * kGi;
  const double load = shape.parameters * s.weight_width;  // a checkpoint is loaded through host memory
  const double running = libraries + offloaded + workers;
  e.host_low_bytes = whole_bytes(running);
  e.host_likely_bytes = whole_bytes(std::max(running, libraries + std::min(load, 10 * kGi)));
  // The sizes of pinned copies are rounded up, by half on average (DeepSpeed's own estimate). Without low_cpu_mem_usage
  // the model and its state dict exist at the same time.
  e.host_high_bytes = whole_bytes(running + 0.5 * offloaded + 2 * load);
  e.disk_bytes = whole_bytes(trainer.model_states_of().disk);
}

}  // namespace

int64_t whole_bytes(double bytes) {
  if (!(bytes > 0)) return 0;
  return bytes >= 4e18 ? int64_t{4000000000000000000} : std::llround(bytes);
}

void finish_terms(Estimate& e) {
  std::erase_if(e.terms, [](const Term& t) { return t.bytes <= 0; });
  std::stable_sort(e.terms.begin(), e.terms.end(), [](const Term& a, const Term& b) { return a.bytes > b.bytes; });
  double sum = 0;
  for (const Term& term : e.terms) sum += static_cast<double>(term.bytes);
  e.likely_bytes = 0;
  for (const Term& term : e.terms)
    e.likely_bytes = whole_bytes(sum) >= int64_t{4000000000000000000} ? whole_bytes(sum) : e.likely_bytes + term.bytes;
}

namespace {

// States in unified memory leave the device as far as the other terms need room.
void page_out(Estimate& e, const Gpu& gpu, double states) {
  const double room = 0.95 * static_cast<double>(gpu.memory_bytes), excess = static_cast<double>(e.likely_bytes) - room;
  if (gpu.memory_bytes <= 0 || excess <= 0) return;
  for (Term& term : e.terms) {
    if (term.name != "optimizer states") continue;
    const double moved = std::min({excess, states, static_cast<double>(term.bytes)});
    term.bytes -= whole_bytes(moved);
    term.how += "; paged: the rest waits on the host";
    e.host_likely_bytes += whole_bytes(moved);
    e.host_high_bytes += whole_bytes(moved);
    e.assumptions.push_back(fmt::format("{:.1f} GiB of the paged states leave the device", moved / (1 << 30)));
    break;
  }
  finish_terms(e);
}

}  // namespace

Estimate estimate_training(const Job& job, const ModelShape& shape, const std::optional<Gpu>& gpu,
                           const Software& software, const FittedConstants& fitted) {
  Estimate e;
  TrainSettings s = resolve_training(job, shape, gpu, software, e.assumptions);
  s.fitted = fitted;
  const Trainer trainer(shape, s);
  std::vector<Phase> phases{trainer.loss(), trainer.first_layer(), trainer.backward_end(), trainer.optimizer_step(),
                            trainer.evaluation()};
  const Phase& peak = *std::max_element(phases.begin(), phases.end(),
                                        [](const Phase& a, const Phase& b) { return a.total() < b.total(); });
  double passing = 0;  // the most temporary memory that the allocator had to find room for
  for (const Phase& p : phases) passing = std::max(passing, p.passing);
  e.peak_phase = peak.name;
  e.terms = peak.terms;
  const double workspace = workspace_bytes(gpu), context = context_bytes(gpu, software);
  const AllocatorSlack& slack = peak.held;
  const double tensors = peak.lasting + peak.passing;
  e.terms.push_back({"workspace", whole_bytes(workspace), peak.name, "matrix-product workspaces"});
  e.terms.push_back({"context", whole_bytes(context), peak.name, "CUDA context and loaded kernels"});
  e.terms.push_back({"allocator", whole_bytes(slack.likely), peak.name, "held by the allocator beside tensors"});
  e.allocated_bytes = whole_bytes(tensors + workspace);
  e.reserved_bytes = whole_bytes(tensors + workspace + slack.likely);
  finish_terms(e);
  const double doubt = shape.guessed ? 0.2 : 0.12;  // of activations: modules differ between versions
  double low = tensors + workspace + context * 0.8 + slack.low - doubt * (shape.guessed ? tensors : passing);
  double high = tensors + workspace + context * 1.2 + slack.high + doubt * (shape.guessed ? tensors : passing);
  if (!job.batch.packing.value_or(true)) low -= 0.75 * peak.passing;  // samples may be much shorter than the limit
  const OptimizerBytes optimizer = optimizer_bytes(shape, s, trainable_parameters(shape, s));
  if (optimizer.paged) low -= trainer.model_states_of().states.bytes;
  if (!optimizer.known) e.assumptions.push_back(fmt::format("optimizer {}: taken as AdamW", s.optimizer));
  e.low_bytes = std::min(whole_bytes(low), e.likely_bytes);
  e.high_bytes = std::max(whole_bytes(high), e.likely_bytes);
  if (shape.guessed) e.assumptions.push_back("the model's shape is guessed from its parameter count");
  host_memory(e, shape, s, trainer);
  if (optimizer.paged && gpu) page_out(e, *gpu, trainer.model_states_of().states.bytes);
  e.low_bytes = std::min(e.low_bytes, e.likely_bytes);
  e.step_seconds = training_step_seconds(job, shape, gpu, software);
  return e;
}

}  // namespace headroom::doctor
