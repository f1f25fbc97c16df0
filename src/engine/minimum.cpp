#include "engine/minimum.h"

#include <fmt/format.h>

#include "base/error.h"
#include "base/least_bytes.h"
#include "engine/refusal.h"
#include "engine/training_request.h"
#include "formats/json.h"
#include "planner/search.h"

namespace headroom {
namespace {

// Options, and what they need.
struct Trial {
  TrainOptions options;
  MinimumLevel level;
};

class Levels {
 public:
  Levels(const TrainOptions& options, const ModelFiles& model) : options_(options), model_(model) {
    best_.level.minimum_bytes = INT64_MAX;
  }

  std::vector<MinimumLevel> rows() {
    take_if_less(permitted("fixed", {}));
    add(TechniqueKind::exact);
    take_if_less(permitted("free", {}));
    add(TechniqueKind::reassociating);
    take_if_less(permitted("free", {"data-order"}));
    add(TechniqueKind::data_order);
    while (take_lossy_step()) continue;
    add(TechniqueKind::lossy);
    return std::move(rows_);
  }

 private:
  Trial permitted(const std::string& arithmetic, const std::vector<std::string>& allow) const {
    Trial trial{options_, {}};
    TechniqueOptions& techniques = trial.options.techniques;
    OptionValues& changes = trial.level.changes;
    if (techniques.arithmetic != arithmetic) changes.emplace_back("arithmetic", arithmetic);
    if (allow.empty() && !techniques.allow.empty()) changes.emplace_back("allow", "");
    for (const std::string& kind : allow) changes.emplace_back("allow", kind);
    techniques.arithmetic = arithmetic;
    techniques.allow = allow;
    return trial;
  }

  // Whether the trial needs less than what was taken so far.
  bool take_if_less(Trial trial) {
    const Plan plan = search_least_plan(training_request(trial.options, model_)).plan;
    throw_if_unfit(plan);
    if (plan.minimum_bytes >= best_.level.minimum_bytes) return false;
    MinimumLevel& level = trial.level;
    level.minimum_bytes = plan.minimum_bytes;
    level.host_bytes = tier_figures(plan, Tier::host).peak_bytes;
    level.disk_bytes = tier_figures(plan, Tier::disk).peak_bytes;
    level.step_seconds = plan.step_seconds;
    level.techniques = taken_techniques(plan);
    best_ = std::move(trial);
    return true;
  }

  // The lossy technique that saves most beside what is taken; false where none saves.
  bool take_lossy_step() {
    const Trial so_far = best_;
    bool saves = false;
    for (const TechniqueStep& step : technique_steps()) {
      if (step.kind() != TechniqueKind::lossy || !step.says_more(so_far.options)) continue;
      Trial trial = so_far;
      step.take(trial.options);
      trial.level.changes.push_back(step.option());
      try {
        saves |= take_if_less(std::move(trial));
      } catch (const Error& error) {  // it does not go with what the options ask for, or with the tiers
        if (error.kind() != ErrorKind::usage && error.kind() != ErrorKind::does_not_fit) throw;
      }
    }
    return saves;
  }

  void add(TechniqueKind allow) {
    MinimumLevel& level = rows_.emplace_back(best_.level);
    level.allow = allow;
    level.changes.emplace_back("memory", std::to_string(level.minimum_bytes));
  }

  const TrainOptions& options_;
  const ModelFiles& model_;
  Trial best_;
  std::vector<MinimumLevel> rows_;
};

}  // namespace

std::vector<MinimumLevel> least_budgets(const TrainOptions& options, const ModelFiles& model) {
  return Levels(options, model).rows();
}

std::string minimum_json(const std::vector<MinimumLevel>& levels) {
  Json list = Json::array();
  for (const MinimumLevel& level : levels)
    list.push_back({{"allow", std::string(kind_name(level.allow))},
                    {"minimum_bytes", level.minimum_bytes},
                    {"host_bytes", level.host_bytes},
                    {"disk_bytes", level.disk_bytes},
                    {"step_seconds", level.step_seconds},
                    {"techniques", level.techniques},
                    {"command", level.command}});
  return Json{{"levels", std::move(list)}}.dump(2) + "\n";
}

std::string minimum_text(const std::vector<MinimumLevel>& levels) {
  std::string out =
      fmt::format("{:<14} {:>13} {:>11} {:>11} {:>10}\n", "allowed", "--memory", "host", "disk", "step s");
  const MinimumLevel* before = nullptr;
  for (const MinimumLevel& level : levels) {
    out += fmt::format("{:<14} {:>13} {:>11} {:>11} {:>10.3f}\n", kind_name(level.allow),
                       format_least_bytes(level.minimum_bytes), format_least_bytes(level.host_bytes),
                       format_least_bytes(level.disk_bytes), level.step_seconds);
    if (before && before->minimum_bytes == level.minimum_bytes) {
      out += "  saves nothing here\n";
    } else {
      out += fmt::format("  {}\n  {}\n", settings_text(level.techniques), level.command);
    }
    before = &level;
  }
  return out;
}

}  // namespace headroom
