#include "engine/plan_training.h"

#include <map>
#include <string>

#include "base/threads.h"
#include "engine/device_facts.h"
#include "engine/other_trainings.h"
#include "engine/training_request.h"
#include "planner/alternatives.h"
#include "planner/estimates.h"
#include "planner/explain.h"
#include "weights/adapter_files.h"

namespace headroom {
namespace {

void search_plan(const TrainOptions& options, const ModelFiles& model, PlannedTraining& planned) {
  planned.search = search_training_plan(planned.request);
  if (!planned.search.plan.feasible)
    find_alternatives(planned.request, other_trainings(options, model), planned.search.plan);
}

// With the choices of a checkpoint; whether they fit.
bool search_as_before(const RunState& state, PlannedTraining& planned) {
  const std::map<std::string, Pin> asked = planned.request.techniques;
  for (const auto& [name, setting] : state.techniques)
    planned.request.techniques[name] = {setting, "as the checkpoint's run had it"};
  planned.search = search_training_plan(planned.request);
  planned.request.techniques = asked;
  return planned.search.plan.feasible;
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
  if (from.resumes() && options.data.micro_batch_size == 0) {
    if (search_as_before(from.state, planned)) return planned;
    note(
        "the checkpoint's micro-batch and chunk sizes do not fit this budget: others are chosen, and losses agree to "
        "1e-5 "
        "instead of bitwise");
  }
  search_plan(options, model, planned);
  return planned;
}

}  // namespace headroom
