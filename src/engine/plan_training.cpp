#include "engine/plan_training.h"

#include <fmt/format.h>

#include <map>
#include <string>

#include "base/threads.h"
#include "engine/device_facts.h"
#include "engine/other_trainings.h"
#include "engine/training_request.h"
#include "planner/alternatives.h"
#include "planner/estimates.h"
#include "planner/explain.h"
#include "planner/pipeline.h"
#include "planner/techniques/permission.h"
#include "weights/adapter_files.h"

namespace headroom {
namespace {

void search_plan(const TrainOptions& options, const ModelFiles& model, PlannedTraining& planned) {
  planned.search = search_training_plan(planned.request);
  if (!planned.search.plan.feasible)
    find_alternatives(planned.request, other_trainings(options, model), planned.search.plan);
}

// Whether what this run asks for leaves a recorded setting as it is: permission does, and "on" where it was on.
bool leaves_setting(const Pin& asked, const std::string& recorded) {
  return asked.setting == kAllowed || (asked.setting == "on" && recorded != "off");
}

enum class Repeated { all, all_but_sizes };

// The pins of a run, and the settings of its checkpoint that they do not contradict. The parts of the loss and of a
// sequence are repeated beside another micro-batch too: as many rows of logits take the same bytes in any micro-batch
// (one with fewer rows is not split), and a sequence is cut alone. Without the sizes, which the planner may choose,
// only what no planner uses by default is left.
std::map<std::string, Pin> with_recorded(std::map<std::string, Pin> pins, const RunState& state, Repeated repeated) {
  for (const auto& [name, setting] : state.techniques) {
    const auto asked = pins.find(name);
    if (asked != pins.end() && !leaves_setting(asked->second, setting)) continue;
    if (repeated == Repeated::all_but_sizes && (setting == "off" || is_planners_choice(*find_technique(name))))
      continue;
    pins[name] = {setting, "as the checkpoint's run had it"};
  }
  return pins;
}

// Takes from a checkpoint's settings those of the planner's choice that this run cannot have, as without a disk.
RunState usable_here(RunState state, const PlanRequest& request, const std::function<void(const std::string&)>& note) {
  std::erase_if(state.techniques, [&](const auto& recorded) {
    const Technique& technique = *find_technique(recorded.first);
    if (recorded.second == "off" || !technique.verdict || !is_planners_choice(technique)) return false;
    const std::string why_not = technique.verdict(request).why_not;
    if (!why_not.empty())
      note(
          fmt::format("the checkpoint's run used {}, which cannot be used here ({}): losses agree to 1e-5 instead of "
                      "bitwise",
                      recorded.first, why_not));
    return !why_not.empty();
  });
  return state;
}

// With the settings of a checkpoint: all of them, or if these do not fit, without its sizes.
void search_resumed(const TrainOptions& options, const ModelFiles& model, const RunState& recorded,
                    PlannedTraining& planned, const std::function<void(const std::string&)>& note) {
  const RunState state = usable_here(recorded, planned.request, note);
  const std::map<std::string, Pin> asked = planned.request.techniques;
  planned.request.techniques = with_recorded(asked, state, Repeated::all);
  planned.search = search_training_plan(planned.request);
  if (planned.search.plan.feasible) return;
  note(
      fmt::format("the checkpoint's {}chunk sizes do not fit this budget: others are chosen, and losses agree to 1e-5 "
                  "instead of bitwise",
                  options.data.micro_batch_size == 0 ? "micro-batch and " : ""));
  planned.request.techniques = with_recorded(asked, state, Repeated::all_but_sizes);
  search_plan(options, model, planned);
}

}  // namespace

void go_on_from_adapter(TrainOptions& options, const ModelFiles& model) {
  if (options.model.adapter.empty()) return;
  options.techniques.lora = continued_lora(open_adapter(options.model.adapter), model.spec, options.techniques.lora);
}

PlannedTraining plan_training(const TrainOptions& asked, const ModelFiles& model) {
  TrainOptions options = asked;
  go_on_from_adapter(options, model);
  PlannedTraining planned{training_request(options, model), {}};
  search_plan(options, model, planned);
  return planned;
}

std::string explanation(const PlannedTraining& planned) { return explain(planned.request, planned.search); }

std::string estimates_note(const PlannedTraining& planned) { return estimates_note(planned.request.profile); }

int64_t least_training_budget(TrainOptions options, const ModelFiles& model) {
  options.machine.memory = int64_t{1} << 20;  // too small for any plan
  return search_training_plan(training_request(options, model)).plan.minimum_bytes;
}

PlannedTraining plan_run(const TrainOptions& options, const ModelFiles& model, const ResumePoint& from,
                         const std::function<void(const std::string&)>& note) {
  PlannedTraining planned{training_request(options, model), {}};
  set_threads(planned.request.facts.threads);
  if (const std::string remark = profile_remark(options.machine, planned.request); !remark.empty()) note(remark);
  if (from.resumes())
    search_resumed(options, model, from.state, planned, note);
  else
    search_plan(options, model, planned);
  return planned;
}

}  // namespace headroom
