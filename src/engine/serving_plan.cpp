#include <algorithm>

#include "base/error.h"
#include "engine/encoder_sizes.h"
#include "engine/inference_request.h"
#include "engine/model_steps.h"
#include "engine/process_bytes.h"
#include "engine/serving.h"
#include "engine/technique_pins.h"
#include "models/serving.h"
#include "passes/precisions.h"
#include "planner/serving.h"
#include "planner/techniques/precision.h"
#include "planner/weight_placement.h"

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

// For generation, or for embeddings.
void refuse_unserved(const ModelFiles& model) {
  if (!is_served_encoder(model.spec)) refuse_without_text(model);
}

void check_serving_precision(const InferenceOptions& options) {
  const Precision* const precision = find_precision(options.techniques.precision);
  if (precision && precision->keeps_fp32)
    throw Error(ErrorKind::usage,
                fmt::format("serve --precision {} is not built in this version", options.techniques.precision),
                "use 32-true, bf16-true or 16-true");
}

// A model of 16-bit numbers is computed in fp32 unless a precision is named.
void note_wider(const InferenceOptions& options, const ModelFiles& model, const Notes& notes) {
  if (!notes || find_precision(options.techniques.precision)) return;
  const std::string stored = model.config.dtype();
  for (const Precision& narrow : {kBf16TruePrecision, kFp16TruePrecision}) {
    TechniqueOptions named;
    named.precision = narrow.word;
    if (stored == master_dtype(named))
      notes(
          fmt::format("the model's dtype is {}, and it is computed in fp32: with --precision {} its dense weights and "
                      "the KV pool take half the bytes",
                      stored, narrow.word));
  }
}

// No kernel reads both narrow types.
void check_cache_beside(const PlanRequest& request, DType cache) {
  const Precision* const precision = narrow_precision_of(request);
  if (!precision || precision->keeps_fp32 || cache == DType::f32 || cache == precision->narrow) return;
  throw Error(ErrorKind::usage,
              fmt::format("--kv-cache-dtype {} does not go with --precision {}: activations are {}", dtype_name(cache),
                          precision->word, dtype_name(precision->narrow)),
              fmt::format("use auto, f32, {} or int8", dtype_name(precision->narrow)));
}

DType cache_type(const PlanRequest& request, const std::string& said) {
  const Precision* const precision = narrow_precision_of(request);
  if (said == "auto") return precision && !precision->keeps_fp32 ? precision->narrow : DType::f32;
  for (const DType dtype : {DType::f32, DType::bf16, DType::f16})
    if (said == dtype_name(dtype)) {
      check_cache_beside(request, dtype);
      return dtype;
    }
  if (said != "int8")
    throw Error(ErrorKind::usage, fmt::format("--kv-cache-dtype {} is not built in this version", said),
                said.starts_with("fp8") ? "use int8, which takes a byte an element too, or auto, f32, bf16 or f16"
                                        : "use auto, f32, bf16, f16 or int8");
  return DType::i8;
}

// Adapter slots have the type of the weights.
LoraSlots slots_of(const PlanRequest& request, const ServingOptions& serving, const ModelSpec& spec, bool adapted) {
  if (serving.lora.wanted() && adapted)
    throw Error(ErrorKind::usage, "--adapter cannot be combined with adapter slots",
                "give all adapters with --lora-modules NAME=DIR, and name one in each request");
  const Precision* const precision = narrow_precision_of(request);
  return planned_slots(serving.lora, spec, precision && !precision->keeps_fp32 ? precision->narrow : DType::f32);
}

AdmissionRule rule_of(const ServingOptions& serving) {
  if (serving.admission == "balanced") return AdmissionRule::balanced;
  if (serving.admission == "guaranteed") return AdmissionRule::guaranteed;
  throw Error(ErrorKind::usage, fmt::format("--admission {} is not known", serving.admission),
              "use guaranteed or balanced");
}

// The location and the number of blocks of parked sequences.
class ParkPlace {
 public:
  ParkPlace(const ServingOptions& serving, const MachineOptions& machine, int64_t block_bytes)
      : rule_(rule_of(serving)),
        on_disk_(machine.disk_memory > 0),
        slot_bytes_(on_disk_ ? ParkFile::slot_bytes(block_bytes) : block_bytes),
        asked_(serving.park_memory),
        disk_(machine.disk_memory) {
    if (asked_ && rule_ == AdmissionRule::guaranteed)
      throw Error(ErrorKind::usage, "--park-memory has no meaning with --admission guaranteed, which parks nothing",
                  "give --admission balanced, or leave it out");
    if (asked_ && *asked_ < slot_bytes_)
      throw Error(ErrorKind::usage,
                  fmt::format("--park-memory {} is too small for one block of {} bytes", *asked_, slot_bytes_),
                  fmt::format("give at least {} bytes", slot_bytes_));
    if (asked_ && on_disk_ && *asked_ > disk_)
      throw Error(ErrorKind::usage,
                  fmt::format("--park-memory {} is more than the {} bytes of --disk-memory", *asked_, disk_),
                  "give a larger --disk-memory, or less");
  }

  AdmissionRule rule() const { return rule_; }
  bool on_disk() const { return rule_ == AdmissionRule::balanced && on_disk_; }
  // Bytes of the disk's budget that weights may not use.
  int64_t disk_bytes() const { return on_disk() ? asked_.value_or(0) : 0; }
  // At most all sequences of a step are parked.
  int64_t slots(const ServingSize& size, int64_t table_blocks) const {
    if (rule_ == AdmissionRule::guaranteed) return 0;
    const int64_t room = asked_ ? *asked_ / slot_bytes_ : on_disk_ ? disk_ / slot_bytes_ : table_blocks;
    return std::min(room, size.sequences * table_blocks);
  }
  // Of these, those that fit besides so many bytes of weights on the disk.
  int64_t slots_left(int64_t slots, int64_t weights) const {
    return on_disk() ? std::min(slots, std::max<int64_t>(disk_ - weights, 0) / slot_bytes_) : slots;
  }

 private:
  AdmissionRule rule_;
  bool on_disk_;
  int64_t slot_bytes_;
  std::optional<int64_t> asked_;
  int64_t disk_;
};

// Refuses features that need a host with access to the arena, or kernels that a device does not have.
void refuse_on_device(DType cache, const LoraSlots& lora, AdmissionRule rule) {
  const auto refuse = [](const char* what, const char* remedy) {
    throw Error(ErrorKind::usage, fmt::format("{} is built for the CPU only", what), remedy);
  };
  if (cache == DType::i8) refuse("--kv-cache-dtype int8", "use bf16 or f32, or --device cpu");
  if (lora.count > 0) refuse("a slot of adapters (--lora-modules, --enable-lora)", "--adapter DIR, or --device cpu");
  if (rule == AdmissionRule::balanced) refuse("--admission balanced", "--admission guaranteed, or --device cpu");
}

int64_t block_bytes_of(const ModelSpec& spec, int64_t block_tokens, DType cache) {
  return 2 * serving_pools(spec) * storage_bytes({cache, {1, block_tokens, serving_cache_width(spec, cache)}});
}

StepLimits limits_of(const ServingSize& size, const ServingOptions& serving, const ModelSpec& spec,
                     const ParkPlace& park) {
  StepLimits limits;
  limits.rows = size.rows;
  limits.sequences = size.sequences;
  limits.logits = std::min(size.rows, size.sequences);
  limits.blocks = size.blocks;
  limits.block_tokens = serving.block_size;
  limits.table_blocks = limits.blocks_for(size.positions);
  limits.positions = size.positions;
  limits.vocab = spec.vocab;
  limits.park_slots = park.slots(size, limits.table_blocks);
  limits.hidden = spec.hidden;
  limits.whole_sequences = is_served_encoder(spec);
  if (limits.whole_sequences) limits.logits = limits.rows;  // any of the states may be requested
  return limits;
}

ServingShape shape_of(const StepLimits& limits, bool parks_on_disk, DType cache) {
  const int64_t blocks = limits.blocks + (parks_on_disk ? 0 : limits.park_slots);
  return {limits.rows, limits.sequences, limits.logits, blocks, limits.block_tokens, limits.positions, cache};
}

// The files of the model to serve: with its weights, or for a plan only a config.json.
class ServedFiles {
 public:
  ServedFiles(const InferenceOptions& options, const Notes& notes) : options_(options) {
    std::error_code ignored;
    if (options.adapter.empty() && options.model.extension() == ".json" &&
        std::filesystem::is_regular_file(options.model, ignored))
      bare_ = open_model(options.model);
    else
      opened_.emplace(options, "serve", notes, OpenedModel::Head::left_out);
    if (bare_ && is_served_encoder(bare_->spec)) bare_->spec = without_head(std::move(bare_->spec));
  }

  const ModelFiles& model() const { return opened_ ? opened_->files() : *bare_; }
  // Whether one adapter is applied to all requests.
  bool adapted() const { return opened_ && opened_->adapter_options().rank > 0; }
  PlanRequest request() const {
    if (opened_) return opened_->request(true);
    return inference_request(options_.machine, options_.techniques, *bare_, true);
  }

 private:
  const InferenceOptions& options_;
  std::optional<OpenedModel> opened_;
  std::optional<ModelFiles> bare_;
};

// Bytes of the persistent tensors of a role in the device's arena.
int64_t role_bytes(const Plan& plan, std::initializer_list<Role> roles) {
  int64_t bytes = 0;
  for (const PersistentTensor& tensor : plan.tensors)
    if (tensor.place.tier == Tier::device && !tensor.name.starts_with(kSlotPrefix) &&
        std::find(roles.begin(), roles.end(), tensor.role) != roles.end())
      bytes += storage_bytes(tensor.place.type);
  return bytes;
}

int64_t logits_bytes(const StepLimits& limits) { return limits.whole_sequences ? 0 : limits.logits * limits.vocab * 4; }

int64_t slot_bytes(const Plan& plan) {
  int64_t bytes = 0;
  for (const PersistentTensor& tensor : plan.tensors)
    if (tensor.name.starts_with(kSlotPrefix)) bytes += storage_bytes(tensor.place.type);
  return bytes;
}

std::vector<ServingRegion> regions_of(const ServingPlan& serving) {
  const Plan& plan = serving.plan;
  const StepLimits& limits = serving.limits;
  const int64_t park = serving.parks_on_disk ? 0 : serving.park_bytes();
  std::vector<ServingRegion> regions{{"weights", role_bytes(plan, {Role::parameter})},
                                     {"kv_pool", role_bytes(plan, {Role::kv_cache}) - park},
                                     {"tables", role_bytes(plan, {Role::constant, Role::data})},
                                     {"logits", logits_bytes(limits)}};
  if (const int64_t slots = slot_bytes(plan); slots > 0) regions.push_back({"lora_slots", slots});
  if (park > 0) regions.push_back({"park", park});
  int64_t known = 0;
  for (const ServingRegion& region : regions) known += region.bytes;
  // For the arena's part that steps share; logits may reuse what was a window.
  if (const int64_t windows = std::min(serving.streamed.window_bytes, plan.arena_bytes - known); windows > 0) {
    regions.insert(regions.begin() + 1, {"windows", windows});
    known += windows;
  }
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
  add("preparation", plan.peak_bytes - plan.arena_bytes - c.total());  // before the arena exists
  return regions;
}

// An encoder's sizes are given; of a decoder's, the planner chooses those that are not.
ServingPlan plan_files(const ServedFiles& served, const InferenceOptions& options, const ServingOptions& serving) {
  const ModelFiles& model = served.model();
  PlanRequest request = served.request();
  pin_stored_embedding_and_head(request, model.spec);
  book_prompt(request, model, 0, 0);
  const DType cache = cache_type(request, serving.kv_cache_dtype);
  const LoraSlots lora = slots_of(request, serving, model.spec, served.adapted());
  const int64_t block_bytes = block_bytes_of(model.spec, serving.block_size, cache);
  const ParkPlace park(serving, options.machine, block_bytes);
  if (!request.facts.is_cpu()) refuse_on_device(cache, lora, park.rule());
  request.disk_budget_bytes -= park.disk_bytes();
  const auto limits = [&](const ServingSize& size) {
    StepLimits made = limits_of(size, serving, model.spec, park);
    made.adapters = lora.count;
    return made;
  };
  ServingQuestion question;
  question.lora = lora;
  question.positions = serving.max_model_len;
  question.sequences = serving.max_num_seqs;
  question.rows = serving.max_num_batched_tokens;
  question.model_positions = model.spec.max_positions;
  question.block_tokens = serving.block_size;
  // Blocks that sequences hold for a step: as many as its tokens fill, the last of each only in part.
  if (is_served_encoder(model.spec))
    question.most_blocks = *serving.max_num_batched_tokens / serving.block_size + *serving.max_num_seqs;
  question.build = [&](const ServingSize& size) {
    return build_serving(model.spec, shape_of(limits(size), park.on_disk(), cache));
  };
  question.rows_of = rows_of_step;
  question.parked = [&](const ServingSize& size) { return park.on_disk() ? 0 : limits(size).park_slots; };
  question.book = [&](PlanRequest& booked, const ServingSize& size) {
    booked.seq_length = size.positions;
    const StepLimits sizes = limits(size);
    int64_t more = ModelSteps::hidden_bytes(sizes) + (serving.outside ? serving.outside(sizes) : 0) +
                   (park.on_disk() ? ParkFile::memory_bytes(block_bytes) : 0) + adapter_loading_bytes(lora, model.spec);
    if (!booked.facts.is_cpu()) more += logits_bytes(sizes);  // their copy on the host
    book_server(booked, model, static_cast<int64_t>(step_sizes(size.rows).size()), serving.outside_bytes + more,
                lora.count > 0);
  };
  SizedServing sized = plan_steps(request, question);
  ServingPlan out;
  out.plan = std::move(sized.plan);
  out.limits = limits(sized.size);
  out.limits.park_slots = park.slots_left(out.limits.park_slots, out.plan.disk.arena_bytes);
  out.cache = cache;
  out.lora = lora;
  out.rule = park.rule();
  out.block_bytes = block_bytes;
  out.parks_on_disk = park.on_disk();
  out.park_directory = options.machine.disk_directory;
  if (!out.plan.feasible) return out;
  out.plan.disk.budget_bytes = options.machine.disk_memory;
  out.streamed = streamed_weights(out.plan);
  out.placement = describe_placement(out.plan);
  out.regions = regions_of(out);
  return out;
}

}  // namespace

ServingPlan plan_serving(const InferenceOptions& options, const ServingOptions& serving, const Notes& notes) {
  check_options(options.machine);
  check_options(options.techniques);
  check_serving_precision(options);
  const ServedFiles served(options, notes);
  const ModelSpec& spec = served.model().spec;
  refuse_unserved(served.model());
  check_sizes(serving, spec);
  note_wider(options, served.model(), notes);
  if (!is_served_encoder(spec)) return plan_files(served, options, serving);
  std::vector<ServingOptions> larger = encoder_sizes(serving, spec);
  ServingPlan least = plan_files(served, options, larger.back());
  if (!least.plan.feasible) return least;
  larger.pop_back();
  for (const ServingOptions& sizes : larger)
    if (ServingPlan out = plan_files(served, options, sizes); out.plan.feasible) {
      out.plan.minimum_bytes = least.plan.minimum_bytes;
      return out;
    }
  return least;
}

}  // namespace headroom
