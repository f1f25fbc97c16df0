#include "engine/opened_model.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "base/threads.h"
#include "device/device.h"
#include "engine/budget.h"
#include "engine/device_facts.h"
#include "engine/inference_request.h"
#include "engine/process_bytes.h"
#include "engine/processor_remark.h"
#include "models/serving.h"
#include "passes/freeze.h"
#include "planner/estimates.h"
#include "planner/techniques/lora.h"
#include "planner/weight_placement.h"
#include "weights/adapter.h"
#include "weights/fresh_weights.h"
#include "weights/objective.h"
#include "weights/weights.h"

namespace headroom {
namespace {

namespace fs = std::filesystem;

// An adapter's directory given as a model's.
bool names_adapter(const InferenceOptions& options) {
  return options.adapter.empty() && is_adapter_directory(options.model);
}

}  // namespace

OpenedModel::OpenedModel(const InferenceOptions& options, const char* purpose, Notes notes, Head head)
    : options_(options),
      notes_(std::move(notes)),
      model_(open_model(names_adapter(options) ? base_of_adapter(options.model) : options.model)) {
  if (model_.directory.empty())
    throw Error(ErrorKind::usage, fmt::format("{} is a bare config.json: there are no weights", options.model.string()),
                "give a model directory");
  refuse_quantized(model_, purpose, QuantizedRule::codes_are_read);
  if (head == Head::left_out && is_served_encoder(model_.spec))
    model_.spec = without_head(std::move(model_.spec));
  else
    refuse_without_head(model_, purpose);
  if (names_adapter(options) || !options.adapter.empty())
    adapter_ = open_adapter(names_adapter(options) ? options.model : options.adapter);
  const SafetensorsSet files = SafetensorsSet::open(model_.weights);
  check_weights(model_.spec, files, adapter_ ? HeadRule::may_miss : HeadRule::required);
  if (adapter_) check_head(files);
}

// Weights of the head that the base lacks must be in the adapter.
void OpenedModel::check_head(const SafetensorsSet& files) const {
  const LoraOptions lora = lora_options(*adapter_, model_.spec);
  for (const WeightInfo& weight : missing_head(model_.spec, files))
    if (std::none_of(lora.modules_to_save.begin(), lora.modules_to_save.end(),
                     [&](const std::string& module) { return pattern_means(module, weight.name); }))
      throw Error(
          ErrorKind::format,
          fmt::format("{}: tensor '{}' is missing, in the adapter too", files.directory().string(), weight.name),
          "train with --modules-to-save naming it, or use a base with a head");
}

void OpenedModel::load(Executor& executor, const LoraOptions& lora) const {
  note(executor.device().remark());
  read_weights(executor, model_.spec, SafetensorsSet::open(model_.weights));
  if (adapter_) load_adapter(executor, lora, adapter_->tensors.path().parent_path());
  executor.run("load", {});
}

LoraOptions OpenedModel::adapter_options() const {
  return adapter_ ? lora_options(*adapter_, model_.spec) : LoraOptions{};
}

PlanRequest OpenedModel::request(bool tokenizer_stays) const {
  MachineOptions here = options_.machine;
  here.runs_here = true;
  const int64_t adapter = adapter_ ? adapter_bytes(adapter_->tensors.path().parent_path()) : 0;
  PlanRequest request = inference_request(here, options_.techniques, model_, tokenizer_stays, adapter);
  set_threads(request.facts.threads);
  note(profile_remark(here, request));
  note(estimates_note(request.profile));
  if (adapter_) pin_lora(request, lora_options(*adapter_, model_.spec));
  if (!here.force) refuse_budgets_above_machine(here.device, request.budget_bytes, request.host_budget_bytes);
  return request;
}

std::unique_ptr<Device> OpenedModel::open_device_for(const Plan& plan, const std::string& unit) const {
  std::unique_ptr<Device> device = open_device(options_.machine.device, plan.facts, options_.machine.disk_directory);
  for (const Tier tier : kArenaTiers) device->require_room(tier, plan.arenas().of(tier));
  note(processor_remark(options_.machine.device, plan.facts.threads));
  if (const std::string placement = describe_placement(plan); !placement.empty())
    note(fmt::format("{}; predicted {:.3g} s for {}", placement, plan.step_seconds, unit));
  return device;
}

}  // namespace headroom
