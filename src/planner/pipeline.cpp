#include "planner/pipeline.h"

#include <algorithm>

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
namespace {

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

// The first half of the pipeline, in the order of technique_list.h, with autodiff in the middle.
Graph assemble(Assembly assembly, const PlanRequest& request, const Candidate& candidate, bool verify,
               std::vector<PassTrace>* trace) {
  run_model_passes(assembly, request, candidate, verify, trace);
  Graph& graph = assembly.graph;
  run_pass(kAutodiff, graph, verify, trace, [&](Graph& g) {
    add_programs(assembly, request);
    drop_forward(g);
  });
  const auto adds_adapters = [&](const Technique* technique) {
    return technique->weights == WeightForm::adapted && candidate[*technique].taken();
  };
  const std::span<const Technique* const> rewriters = techniques_of(PipelinePart::model);
  if (std::any_of(rewriters.begin(), rewriters.end(), adds_adapters))
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

std::span<const Technique* const> all_techniques() { return technique_lists::kAll; }

std::vector<const PassInfo*> all_passes() {
  std::vector<const PassInfo*> infos;
  for (const Technique* technique : technique_lists::kAll) infos.push_back(technique->info);
  return infos;
}

std::vector<const PassInfo*> inference_passes() {
  std::vector<const PassInfo*> infos;
  for (const Technique* technique : technique_lists::kAll)
    if (technique->for_inference) infos.push_back(technique->info);
  return infos;
}

const Technique* find_technique(std::string_view name) {
  const auto at = std::find_if(technique_lists::kAll.begin(), technique_lists::kAll.end(),
                               [&](const Technique* t) { return t->name() == name; });
  return at == technique_lists::kAll.end() ? nullptr : *at;
}

const Technique* technique_set_by(std::string_view option) {
  const auto is_this = [&](const Spelling& spelling) { return spelling.option == option; };
  const auto at = std::find_if(technique_lists::kAll.begin(), technique_lists::kAll.end(), [&](const Technique* t) {
    return is_this(t->option) || std::any_of(t->aliases.begin(), t->aliases.end(), is_this);
  });
  return at == technique_lists::kAll.end() ? nullptr : *at;
}

std::span<const Technique* const> techniques_of(PipelinePart part) {
  switch (part) {
    case PipelinePart::model:
      return technique_lists::kModel;
    case PipelinePart::products:
      return technique_lists::kProducts;
    case PipelinePart::sizes:
      return technique_lists::kSizes;
    case PipelinePart::compute:
      return technique_lists::kCompute;
    case PipelinePart::placement:
      return technique_lists::kPlacement;
  }
  return {};
}

bool weights_are(const PlanRequest& request, WeightForm form) {
  const auto makes = [&](const Technique* technique) {
    return technique->weights == form && asked_for(request, *technique->info);
  };
  return std::any_of(technique_lists::kAll.begin(), technique_lists::kAll.end(), makes);
}

size_t Candidate::slot(const Technique& technique) {
  size_t at = 0;
  while (technique_lists::kAll[at] != &technique) ++at;
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
