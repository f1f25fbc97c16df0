#include <algorithm>

#include "base/error.h"
#include "engine/inference_request.h"
#include "engine/model_steps.h"
#include "engine/process_bytes.h"
#include "engine/serving.h"
#include "models/serving.h"
#include "passes/precisions.h"
#include "planner/serving.h"
#include "planner/techniques/precision.h"

namespace headroom {
namespace {

constexpr int64_t kMostSequences = 4096;
constexpr int64_t kMostRows = 65536;
constexpr int64_t kMostBlockTokens = 128;

void check_range(const char* option, std::optional<int64_t> value, int64_t most, const std::string& limit) {
  if (!value || (*value >= 1 && *value <= most)) return;
  throw Error(ErrorKind::usage, fmt::format("{} {} is out of range", option, *value),
              fmt::format("give 1 to {}{}", most, limit));
}

void check_sizes(const ServingOptions& serving, const ModelSpec& spec) {
  check_range("--max-model-len", serving.max_model_len, spec.max_positions, ", the model's positions");
  check_range("--max-num-seqs", serving.max_num_seqs, kMostSequences, "");
  check_range("--max-num-batched-tokens", serving.max_num_batched_tokens, kMostRows, "");
  check_range("--block-size", serving.block_size, kMostBlockTokens, "");
  if ((serving.block_size & (serving.block_size - 1)) != 0)
    throw Error(ErrorKind::usage, fmt::format("--block-size {} is not a power of two", serving.block_size),
                "give 1, 2, 4, 8, 16, 32, 64 or 128");
  if (serving.max_num_batched_tokens && serving.max_num_seqs && *serving.max_num_batched_tokens < *serving.max_num_seqs)
    throw Error(ErrorKind::usage,
                fmt::format("--max-num-batched-tokens {} leaves some of --max-num-seqs {} without a token in each step",
                            *serving.max_num_batched_tokens, *serving.max_num_seqs),
                "give at least as many tokens as sequences");
}

void check_serving_precision(const InferenceOptions& options) {
  const Precision* const precision = find_precision(options.techniques.precision);
  if (precision && precision->keeps_fp32)
    throw Error(ErrorKind::usage,
                fmt::format("serve --precision {} is not built in this version", options.techniques.precision),
                "use 32-true, bf16-true or 16-true");
}

DType cache_type(const PlanRequest& request, const std::string& said) {
  const Precision* const precision = narrow_precision_of(request);
  if (said == "auto") return precision && !precision->keeps_fp32 ? precision->narrow : DType::f32;
  for (const DType dtype : {DType::f32, DType::bf16, DType::f16})
    if (said == dtype_name(dtype)) return dtype;
  throw Error(ErrorKind::usage, fmt::format("--kv-cache-dtype {} is not built in this version", said),
              "use auto, f32, bf16 or f16");
}

StepLimits limits_of(const ServingSize& size, const ServingOptions& serving, const ModelSpec& spec) {
  StepLimits limits;
  limits.rows = size.rows;
  limits.sequences = size.sequences;
  limits.logits = std::min(size.rows, size.sequences);
  limits.blocks = size.blocks;
  limits.block_tokens = serving.block_size;
  limits.table_blocks = (size.positions + serving.block_size - 1) / serving.block_size;
  limits.positions = size.positions;
  limits.vocab = spec.vocab;
  limits.hidden = spec.hidden;
  return limits;
}

ServingShape shape_of(const StepLimits& limits, DType cache) {
  return {limits.rows, limits.sequences, limits.logits, limits.blocks, limits.block_tokens, limits.positions, cache};
}

// The files of what is to be served: a model with its weights, or for a plan a config.json alone.
class ServedFiles {
 public:
  ServedFiles(const InferenceOptions& options, const Notes& notes) : options_(options) {
    std::error_code ignored;
    if (options.adapter.empty() && options.model.extension() == ".json" &&
        std::filesystem::is_regular_file(options.model, ignored))
      bare_ = open_model(options.model);
    else
      opened_.emplace(options, "serve", notes);
  }

  const ModelFiles& model() const { return opened_ ? opened_->files() : *bare_; }
  PlanRequest request() const {
    if (opened_) return opened_->request(true);
    return inference_request(options_.machine, options_.techniques, *bare_, true);
  }

 private:
  const InferenceOptions& options_;
  std::optional<OpenedModel> opened_;
  std::optional<ModelFiles> bare_;
};

// What the persistent tensors of a role take of the device's arena.
int64_t role_bytes(const Plan& plan, std::initializer_list<Role> roles) {
  int64_t bytes = 0;
  for (const PersistentTensor& tensor : plan.tensors)
    if (tensor.place.tier == Tier::device && std::find(roles.begin(), roles.end(), tensor.role) != roles.end())
      bytes += storage_bytes(tensor.place.type);
  return bytes;
}

std::vector<ServingRegion> regions_of(const Plan& plan, const StepLimits& limits) {
  std::vector<ServingRegion> regions{{"weights", role_bytes(plan, {Role::parameter})},
                                     {"kv_pool", role_bytes(plan, {Role::kv_cache})},
                                     {"tables", role_bytes(plan, {Role::constant, Role::data})},
                                     {"logits", limits.logits * limits.vocab * 4}};
  int64_t known = 0;
  for (const ServingRegion& region : regions) known += region.bytes;
  regions.push_back({"activations", plan.arena_bytes - known});
  const ProcessBytes& c = plan.process;
  const auto add = [&](const char* name, int64_t bytes) {
    if (bytes > 0) regions.push_back({name, bytes});
  };
  add("code", c.code + c.kernels);
  add("tokenizer", c.tokenizer);
  const int64_t embeddings = ModelSteps::hidden_bytes(limits);
  add("server", c.server + c.grammar - embeddings);
  add("embeddings", embeddings);
  add("files", c.data);
  add("plan", c.planner);
  add("page_tables", c.page_tables);
  add("copies", c.copies);
  add("device", c.gpu + c.graphs);
  add("caller", c.caller);
  add("preparation", plan.peak_bytes - plan.arena_bytes - c.total());  // before the arena is there
  return regions;
}

}  // namespace

ServingPlan plan_serving(const InferenceOptions& options, const ServingOptions& serving, const Notes& notes) {
  check_options(options.machine);
  check_options(options.techniques);
  check_serving_precision(options);
  const ServedFiles served(options, notes);
  const ModelFiles& model = served.model();
  refuse_without_text(model);
  check_sizes(serving, model.spec);
  PlanRequest request = served.request();
  if (!request.facts.is_cpu())
    throw Error(ErrorKind::usage,
                fmt::format("serving on {} is not built in this version: its attention has kernels for the CPU alone",
                            options.machine.device),
                "--device cpu");
  book_prompt(request, model, 0, 0);
  const DType cache = cache_type(request, serving.kv_cache_dtype);
  ServingQuestion question;
  question.positions = serving.max_model_len;
  question.sequences = serving.max_num_seqs;
  question.rows = serving.max_num_batched_tokens;
  question.model_positions = model.spec.max_positions;
  question.block_tokens = serving.block_size;
  question.build = [&](const ServingSize& size) {
    return build_serving(model.spec, shape_of(limits_of(size, serving, model.spec), cache));
  };
  question.book = [&](PlanRequest& booked, const ServingSize& size) {
    booked.seq_length = size.positions;
    const StepLimits limits = limits_of(size, serving, model.spec);
    const int64_t more = ModelSteps::hidden_bytes(limits) + (serving.outside ? serving.outside(limits) : 0);
    book_server(booked, model, static_cast<int64_t>(step_sizes(size.rows).size()), serving.outside_bytes + more);
  };
  SizedServing sized = plan_steps(request, question);
  ServingPlan out;
  out.plan = std::move(sized.plan);
  out.limits = limits_of(sized.size, serving, model.spec);
  out.cache = cache;
  if (out.plan.feasible) out.regions = regions_of(out.plan, out.limits);
  return out;
}

}  // namespace headroom
