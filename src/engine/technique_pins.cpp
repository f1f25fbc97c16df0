#include "engine/technique_pins.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "base/error.h"
#include "passes/attention_order.h"
#include "passes/freeze.h"
#include "passes/length_buckets.h"
#include "passes/matmul_precision.h"
#include "passes/packing.h"
#include "passes/precisions.h"
#include "passes/qat.h"
#include "passes/quantize_weights.h"
#include "planner/pipeline.h"
#include "planner/techniques/list_setting.h"
#include "planner/techniques/lora.h"
#include "planner/techniques/micro_batch.h"
#include "planner/techniques/permission.h"
#include "weights/objective.h"

namespace headroom {
namespace {

class Pins {
 public:
  explicit Pins(const std::map<std::string, std::string>& named) {
    for (const auto& [name, setting] : named) pins_[name] = {setting};
  }

  // An option sets a technique to `setting` ("" or "off": not used); `shown` is the option as given. --technique must
  // agree.
  void say(const PassInfo& info, const std::string& setting, std::string why, const std::string& shown,
           const char* remedy = "state one of them") {
    const std::string name(info.name);
    const bool taken = !setting.empty() && setting != "off";
    if (const auto named = pins_.find(name); named != pins_.end()) {
      if ((named->second.setting != "off") != taken)
        throw Error(ErrorKind::usage,
                    fmt::format("--technique {}={} contradicts {}", name, named->second.setting, shown), remedy);
      if (named->second.setting == setting) return;
    }
    if (taken) pins_[name] = {setting, std::move(why)};
  }

  std::map<std::string, Pin> take() { return std::move(pins_); }

 private:
  std::map<std::string, Pin> pins_;
};

void say_precision(const TechniqueOptions& options, Pins& pins) {
  for (const Precision& precision : kPrecisions)
    pins.say(*precision.technique, options.precision == precision.word ? "on" : "off", "named by --precision",
             fmt::format("--precision {}", options.precision));
}

void say_matmul_precision(const TechniqueOptions& options, Pins& pins) {
  const auto named = options.pins.find(std::string(kMatmulPrecision.name));
  if (named != options.pins.end() && named->second != options.matmul_precision)
    throw Error(ErrorKind::usage,
                fmt::format("--technique matmul-precision={} contradicts --matmul-precision {}", named->second,
                            options.matmul_precision),
                "state one of them");
  if (options.matmul_precision != "highest")
    pins.say(kMatmulPrecision, options.matmul_precision, "named by --matmul-precision", "");
}

void say_attention_order(const TechniqueOptions& options, Pins& pins) {
  if (options.attention_order != "any") return;
  const auto named = options.pins.find(std::string(kAttentionOrder.name));
  if (named != options.pins.end() && named->second == "fixed")
    throw Error(ErrorKind::usage, "--technique attention-order=fixed contradicts --attention-order any",
                "state one of them");
  pins.say(kAttentionOrder, "any", "named by --attention-order", "");
}

void say_adapters(const TechniqueOptions& options, const ModelSpec& spec, Pins& pins) {
  LoraOptions lora = options.lora;
  train_head_with_adapters(spec, {}, lora);
  const Pin pin = lora_pin(lora);
  pins.say(kLora, pin.setting, pin.why, fmt::format("--lora-r {}", lora.rank), "give --lora-r alone");
}

bool allows(const TechniqueOptions& options, const PassInfo& info) {
  const auto pin = options.pins.find(std::string(info.name));
  if (pin != options.pins.end() && pin->second == "off") return false;
  return std::any_of(options.allow.begin(), options.allow.end(), [&](const std::string& allowed) {
    return allowed == info.name || allowed == kind_name(info.kind);
  });
}

std::string allowed_by(const TechniqueOptions& options) {
  return fmt::format("allowed by --allow {}", fmt::join(options.allow, ","));
}

// Where no option names a lossy technique that is allowed, the planner decides.
void say_permissions(const TechniqueOptions& options, Pins& pins) {
  for (const Technique* technique : all_techniques())
    if (technique->by_permission && technique->info->kind == TechniqueKind::lossy &&
        !options.pins.contains(std::string(technique->name())) && allows(options, *technique->info))
      pins.say(*technique->info, std::string(kAllowed), allowed_by(options), "");
}

// Packing or length buckets if one is named; otherwise if allowed, packing first, which saves more.
void say_data_order(const TechniqueOptions& options, const ModelSpec& spec, Pins& pins) {
  const bool can_pack = spec.causal && spec.objective == Objective::language;
  if (options.packing && !can_pack)
    throw Error(ErrorKind::usage,
                fmt::format("--packing: {} is not a causal language model, so its rows cannot share a sequence",
                            spec.architecture),
                "use --group-by-length true");
  if (options.packing && options.group_by_length)
    throw Error(ErrorKind::usage, "--packing and --group-by-length: packed sequences all have about the same length",
                "give --packing alone");
  const bool packing = options.packing || (!options.group_by_length && can_pack && allows(options, kPacking));
  const bool buckets = options.group_by_length || (!packing && allows(options, kLengthBuckets));
  const std::string allowed = allowed_by(options);
  pins.say(kPacking, packing ? "on" : "off", options.packing ? "named by --packing" : allowed, "--packing");
  pins.say(kLengthBuckets, buckets ? "on" : "off", options.group_by_length ? "named by --group-by-length" : allowed,
           "--group-by-length");
}

}  // namespace

std::map<std::string, Pin> technique_pins(const TechniqueOptions& options, int64_t micro_batch_size,
                                          const ModelSpec& spec) {
  Pins pins(options.pins);
  say_precision(options, pins);
  say_matmul_precision(options, pins);
  say_attention_order(options, pins);
  say_adapters(options, spec, pins);
  pins.say(kFreeze, write_list(options.freeze), "named by --freeze", "--freeze");
  say_data_order(options, spec, pins);
  say_permissions(options, pins);
  std::map<std::string, Pin> out = pins.take();
  if (micro_batch_size > 0) pin_micro_batch(out, micro_batch_size, "pinned by --micro-batch-size");
  return out;
}

void pin_stored_codes(PlanRequest& request, const ModelSpec& spec) {
  if (spec.weight_codes.empty()) return;
  const bool rounds_activations = spec.weight_codes == "int8-int4";
  const auto say = [&](const PassInfo& info, const std::string& setting) {
    Pin& pin = request.techniques[std::string(info.name)];
    if (!pin.setting.empty() && pin.setting != setting)
      throw Error(ErrorKind::usage,
                  fmt::format("--technique {}={}: the checkpoint's weights are {} codes", info.name, pin.setting,
                              spec.weight_codes),
                  "leave it out: they are used as they are stored");
    if (pin.setting.empty()) pin = {setting, "as the checkpoint stores them"};
  };
  say(kQuantizeWeights, rounds_activations ? "int4" : spec.weight_codes);
  if (rounds_activations) say(kQat, spec.weight_codes);
}

void pin_stored_embedding_and_head(PlanRequest& request, const ModelSpec& spec) {
  if (!request.facts.is_cpu() || (spec.embedding_codes.empty() && spec.head_codes.empty())) return;
  Pin& pin = request.techniques.at(std::string(kQuantizeWeights.name));
  if (pin.why.empty()) return;  // named: the layers alone
  const std::vector<std::string> saved = requested_lora(request).modules_to_save;
  const auto stays = [&](std::string_view role) {
    return std::none_of(saved.begin(), saved.end(),
                        [&](const std::string& module) { return pattern_means(module, spec.name(role)); });
  };
  CodedParts parts;
  parts.layers = spec.weight_codes;
  if (stays("embed")) parts.embedding = spec.embedding_codes;
  if (stays(spec.tied ? "embed" : "head")) parts.head = spec.head_codes;
  pin.setting = coded_setting(parts);
}

}  // namespace headroom
