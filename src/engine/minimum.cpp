#include "engine/minimum.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "base/error.h"
#include "base/least_bytes.h"
#include "engine/refusal.h"
#include "engine/training_request.h"
#include "formats/json.h"
#include "planner/search.h"

namespace headroom {
namespace {

// Options, and the memory that they need.
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
    take_lossy_steps();
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

  // Whether the trial needs less than the best so far.
  bool take_if_less(Trial trial) {
    measure(trial);
    if (trial.level.minimum_bytes >= best_.level.minimum_bytes) return false;
    best_ = std::move(trial);
    return true;
  }

  // Fills in what the options need. Throws Error if they do not fit together.
  void measure(Trial& trial) const {
    const Plan plan = search_least_plan(training_request(trial.options, model_)).plan;
    throw_if_unfit(plan);
    MinimumLevel& level = trial.level;
    level.minimum_bytes = plan.minimum_bytes;
    level.host_bytes = tier_figures(plan, Tier::host).peak_bytes;
    level.disk_bytes = tier_figures(plan, Tier::disk).peak_bytes;
    level.step_seconds = plan.step_seconds;
    level.techniques = taken_techniques(plan);
  }

  // With the step; nothing if it does not fit the options, or the tiers.
  std::optional<Trial> with(const TechniqueStep& step, const Trial& before) const {
    Trial trial = before;
    step.take(trial.options);
    trial.level.changes.push_back(step.option(before.options));
    try {
      measure(trial);
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::usage && error.kind() != ErrorKind::does_not_fit) throw;
      return {};
    }
    return trial;
  }

  // Tries one after the other, and starts again after a step that enables others which cost more than they save by
  // themselves, such as adapters, whose base can then be quantized.
  void take_lossy_steps() {
    const Trial before = best_;
    while (take_lossy_step()) continue;
    for (const TechniqueStep& step : technique_steps()) {
      if (!is_lossy(step, before) || !opens_others(step, before)) continue;
      std::optional<Trial> first = with(step, before);
      if (!first) continue;
      Trial without = std::exchange(best_, std::move(*first));
      while (take_lossy_step()) continue;
      if (without.level.minimum_bytes <= best_.level.minimum_bytes) best_ = std::move(without);
    }
  }

  static bool is_lossy(const TechniqueStep& step, const Trial& beside) {
    return step.kind() == TechniqueKind::lossy && step.says_more(beside.options);
  }

  static bool opens_others(const TechniqueStep& step, const Trial& before) {
    Trial after = before;
    step.take(after.options);
    return std::ranges::any_of(technique_steps(), [&](const TechniqueStep& other) {
      return is_lossy(other, after) && !is_lossy(other, before);
    });
  }

  // Adds the lossy technique that saves most; false if none saves anything.
  bool take_lossy_step() {
    const Trial so_far = best_;
    bool saves = false;
    for (const TechniqueStep& step : technique_steps()) {
      if (!is_lossy(step, so_far)) continue;
      std::optional<Trial> trial = with(step, so_far);
      if (!trial || trial->level.minimum_bytes >= best_.level.minimum_bytes) continue;
      best_ = std::move(*trial);
      saves = true;
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
