#include "planner/pipeline.h"

#include <algorithm>
#include <array>

#include "base/error.h"
#include "base/nearest_name.h"
#include "ir/rewrite.h"
#include "ir/verify.h"
#include "passes/attention_kernels.h"
#include "passes/low_rank_products.h"
#include "passes/narrow_logits.h"
#include "passes/norm_casts.h"
#include "passes/norm_sums.h"
#include "planner/assemble.h"
#include "planner/steps.h"

namespace headroom {

namespace techniques {
extern const Technique packing, length_buckets, lora, freeze, quantize_weights, quantize_training, qat, bf16_mixed,
    bf16_true, fp16_mixed, fp16_true;
extern const Technique matmul_precision, attention_order;
extern const Technique micro_batch, chunked_loss;
extern const Technique recompute, sequence_chunks, compress_activations, fused_optimizer;
extern const Technique offload_activations, offload_optimizer, offload_gradients, offload_parameters, prefetch;
extern const Technique flash_attention;
}  // namespace techniques

namespace {

// Every technique in the order in which its pass runs: by list, then by position in the list.

// On the forward program, before autodiff.
constexpr const Technique* kModel[] = {
    &techniques::packing,            // hands attention and positions the segments of the batch
    &techniques::length_buckets,     // no pass
    &techniques::lora,               // adds thin products to the targeted ones
    &techniques::freeze,             // marks the weights that autodiff trains
    &techniques::quantize_weights,   // stores others as codes
    &techniques::quantize_training,  // and trained ones
    &techniques::qat,                // rounds the operands of products; the precision's casts come after it
    &techniques::bf16_mixed,         // rewrites the forward graph; autodiff derives the matching backward pass
    &techniques::bf16_true,          // the same with the weights themselves in bf16
    &techniques::fp16_mixed,         // as bf16-mixed
    &techniques::fp16_true,
};
// After autodiff, so that they also apply to the gradients' products.
constexpr const Technique* kProducts[] = {
    &techniques::matmul_precision,
    &techniques::attention_order,  // no pass: limits the choice of attention's kernels
};
// The micro-batch bounds every shape; the loss's scratch depends on its chunk.
constexpr const Technique* kSizes[] = {&techniques::micro_batch, &techniques::chunked_loss};
// The order of computation.
constexpr const Technique* kCompute[] = {
    &techniques::recompute,             // drops activations; its clones read weights in the backward pass
    &techniques::sequence_chunks,       // the clones join the runs that it cuts; updates follow all parts of a gradient
    &techniques::compress_activations,  // what those two keep
    &techniques::fused_optimizer,       // an update may only follow the last reader of its weight, clones included
};
// The tiers of values.
constexpr const Technique* kPlacement[] = {
    &techniques::offload_activations,  // after recompute: recomputed values are not kept anywhere
    &techniques::offload_optimizer,    // after fused-optimizer, which moves updates and leaves no gradient to carry
    &techniques::offload_gradients,
    &techniques::offload_parameters,  // last: every reader of a weight is known
    &techniques::prefetch,            // no pass: the depth of the copies of those above
};
// Techniques that are always on.
constexpr const Technique* kAlways[] = {&techniques::flash_attention};

// The lists joined.
constexpr auto kOrder = [] {
  std::array<const Technique*, std::size(kModel) + std::size(kProducts) + std::size(kSizes) + std::size(kCompute) +
                                   std::size(kPlacement) + std::size(kAlways)>
      all{};
  auto to = all.begin();
  const auto append = [&](std::span<const Technique* const> part) { to = std::copy(part.begin(), part.end(), to); };
  append(kModel), append(kProducts), append(kSizes), append(kCompute), append(kPlacement), append(kAlways);
  return all;
}();
static_assert(kOrder.size() == Candidate::kTechniques, "planner/technique.h says how many there are");

// Names without a technique of this version, and what has the same effect; "" if nothing has.
struct OtherName {
  std::string_view name;
  const char* instead;
};
constexpr OtherName kOtherNames[] = {
    {"optimizer-8bit", "use --optim adamw_8bit or lion_8bit"},
    {"paged-optimizer", "use --optim paged_adamw_32bit or paged_adamw_8bit, with --host-memory or --disk-memory"},
    {"fuse-elementwise", "leave it out: `headroom plan --explain` lists what is always fused"},
    {"paged-kv", "leave it out: `headroom serve` always keeps its KV cache in blocks"},
    {"shard", ""},
    {"ring-attention", ""}};

void run_model_passes(Assembly& assembly, const PlanRequest& request, const Candidate& candidate, bool verify,
                      std::vector<PassTrace>* trace) {
  for (const Technique* technique : techniques_of(PipelinePart::model))
    if (technique->model_pass && candidate[*technique].taken()) {
      run_pass(*technique->info, assembly.graph, false, trace,
               [&](Graph&) { technique->model_pass(assembly, request, candidate); });
      if (verify) verify_forward_or_throw(assembly.graph, technique->name());
    }
}

void run_passes(PipelinePart part, Graph& graph, const PlanRequest& request, const Candidate& candidate, bool verify,
                std::vector<PassTrace>* trace) {
  for (const Technique* technique : techniques_of(part))
    if (technique->pass && (technique->runs_always || candidate[*technique].taken()))
      run_pass(*technique->info, graph, verify, trace, [&](Graph& g) { technique->pass(g, request, candidate); });
}

// The first half of the pipeline, in the order of kOrder, with autodiff in the middle.
Graph assemble(Assembly assembly, const PlanRequest& request, const Candidate& candidate, bool verify,
               std::vector<PassTrace>* trace) {
  run_model_passes(assembly, request, candidate, verify, trace);
  Graph& graph = assembly.graph;
  run_pass(kAutodiff, graph, verify, trace, [&](Graph& g) {
    add_programs(assembly, request);
    drop_forward(g);
  });
  if (candidate[techniques::lora].taken())
    run_pass(kLowRankProducts, graph, verify, trace, [](Graph& g) { join_low_rank_products(g); });
  run_pass(kNormCasts, graph, verify, trace, [&](Graph& g) { join_norm_casts(g, request.facts); });
  run_pass(kNormSums, graph, verify, trace, [&](Graph& g) { join_norm_sums(g, request.facts); });
  run_pass(kCompact, graph, verify, trace, [](Graph& g) { compact(g); });
  run_passes(PipelinePart::products, graph, request, candidate, verify, trace);
  run_pass(kNarrowLogits, graph, verify, trace, [&](Graph& g) { narrow_logits(g, request.facts); });
  const auto order = candidate[techniques::attention_order].taken() ? AttentionOrder::any : AttentionOrder::fixed;
  run_pass(kAttentionKernels, graph, verify, trace,
           [&](Graph& g) { choose_attention_kernels(g, request.facts, request.profile, order); });
  return std::move(graph);
}

// Refuses a pin of a name that has no technique; `off` is accepted for the known ones.
void refuse_other_name(const std::string& name, const std::string& setting) {
  const auto* const other = std::find_if(std::begin(kOtherNames), std::end(kOtherNames),
                                         [&](const OtherName& known) { return known.name == name; });
  if (other == std::end(kOtherNames)) {
    std::vector<std::string> names;
    for (const PassInfo* info : all_passes()) names.emplace_back(info->name);
    throw Error(ErrorKind::usage, fmt::format("there is no technique '{}'", name),
                fmt::format("did you mean '{}'?", nearest_name(name, names)));
  }
  if (setting == "off") return;
  const std::string instead = other->instead;
  throw Error(
      ErrorKind::usage,
      fmt::format("technique '{}' is not {}", name, instead.empty() ? "built in this version" : "set by --technique"),
      instead.empty() ? "leave it out; `headroom plan --help` lists the techniques" : instead);
}

}  // namespace

std::span<const Technique* const> all_techniques() { return kOrder; }

std::vector<const PassInfo*> all_passes() {
  std::vector<const PassInfo*> infos;
  for (const Technique* technique : kOrder) infos.push_back(technique->info);
  return infos;
}

const Technique* find_technique(std::string_view name) {
  const auto at = std::find_if(kOrder.begin(), kOrder.end(), [&](const Technique* t) { return t->name() == name; });
  return at == kOrder.end() ? nullptr : *at;
}

std::span<const Technique* const> techniques_of(PipelinePart part) {
  switch (part) {
    case PipelinePart::model:
      return kModel;
    case PipelinePart::products:
      return kProducts;
    case PipelinePart::sizes:
      return kSizes;
    case PipelinePart::compute:
      return kCompute;
    case PipelinePart::placement:
      return kPlacement;
  }
  return {};
}

size_t Candidate::slot(const Technique& technique) {
  size_t at = 0;
  while (kOrder[at] != &technique) ++at;
  return at;
}

void check_techniques(const PlanRequest& request) {
  for (const auto& [name, pin] : request.techniques) {
    if (const Technique* technique = find_technique(name)) {
      if (technique->check) technique->check(request, pin.setting);
      if (pin.setting == "off" || !technique->verdict) continue;
      const Verdict verdict = technique->verdict(request);
      if (!verdict.why_not.empty())
        throw Error(ErrorKind::usage, fmt::format("--technique {}={} {}", name, pin.setting, verdict.why_not),
                    verdict.remedy);
      continue;
    }
    refuse_other_name(name, pin.setting);
  }
}

Graph assemble_training(const PlanRequest& request, const Candidate& candidate, bool verify,
                        std::vector<PassTrace>* trace) {
  return assemble(begin_assembly(request, true), request, candidate, verify, trace);
}

Graph assemble_evaluation(const PlanRequest& request, bool verify) {
  Candidate asked;
  for (const PipelinePart part : {PipelinePart::model, PipelinePart::products})
    for (const Technique* technique : techniques_of(part))
      if (technique->choices) asked[*technique] = technique->choices(request, asked).back();
  return assemble(begin_assembly(request, false), request, asked, verify, nullptr);
}

Graph expand(const Graph& assembled, const PlanRequest& request, const Candidate& candidate, bool verify,
             std::vector<PassTrace>* trace) {
  Graph graph = assembled;
  run_compute_passes(graph, request, candidate, verify, trace);
  run_placement_passes(graph, request, candidate, verify, trace);
  return graph;
}

void set_sizes(Graph& graph, const PlanRequest& request, const Candidate& candidate, bool verify,
               std::vector<PassTrace>* trace) {
  run_passes(PipelinePart::sizes, graph, request, candidate, verify, trace);
}

void run_compute_passes(Graph& graph, const PlanRequest& request, const Candidate& candidate, bool verify,
                        std::vector<PassTrace>* trace) {
  set_sizes(graph, request, candidate, verify, trace);
  run_passes(PipelinePart::compute, graph, request, candidate, verify, trace);
}

void run_placement_passes(Graph& graph, const PlanRequest& request, const Candidate& candidate, bool verify,
                          std::vector<PassTrace>* trace) {
  run_passes(PipelinePart::placement, graph, request, candidate, verify, trace);
}

int64_t process_bytes_of(const PlanRequest& request, const Candidate& candidate) {
  int64_t bytes = 0;
  for (const Technique* technique : all_techniques())
    if (technique->process_bytes) bytes += technique->process_bytes(request, candidate);
  return bytes;
}

Candidate in_graph(const PlanRequest& request, const Candidate& candidate) {
  Candidate out = candidate;
  for (const Technique* technique : all_techniques())
    if (technique->in_graph) out[*technique] = technique->in_graph(request, candidate);
  return out;
}

}  // namespace headroom
