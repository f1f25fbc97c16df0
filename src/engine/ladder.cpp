#include "engine/ladder.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/bytes.h"
#include "base/error.h"
#include "engine/technique_step.h"
#include "engine/training_request.h"
#include "formats/json.h"
#include "planner/search.h"

namespace headroom {
namespace {

// Large enough for any plan.
constexpr int64_t kUnbounded = int64_t{1} << 60;

// The options with exactly these techniques.
TrainOptions with_techniques(TrainOptions options, const std::vector<TechniqueStep>& steps) {
  options.machine.memory = kUnbounded;
  options.data.micro_batch_size = options.data.global_batch_size;
  auto& pins = options.techniques.pins;
  pins.clear();
  for (const TechniqueStep& step : technique_steps())
    if (step.kind() != TechniqueKind::lossy && step.is_pin()) pins[std::string(step.name())] = "off";
  for (const TechniqueStep& step : steps) step.take(options);
  return options;
}

class Ladder {
 public:
  Ladder(const TrainOptions& options, const ModelFiles& model) : options_(options), model_(model) {
    add("baseline", {});
  }

  std::vector<LadderRow> rows() {
    std::vector<TechniqueStep> saving;
    for (const TechniqueStep& step : technique_steps())
      if (step.says_more(options_) && add(std::string(step.name()), {step}) && rows_.back().saves_bytes > 0)
        saving.push_back(step);
    std::vector<TechniqueStep> together;
    for (const TechniqueStep& step : saving) {
      const auto is_another = [](const TechniqueStep& before) { return before.is_precision(); };
      if (step.is_precision() && std::any_of(together.begin(), together.end(), is_another)) continue;
      together.push_back(step);
      if (together.size() > 1 && !add("together: " + names(together), together)) together.pop_back();
    }
    // What a technique is combined with to measure it alone: quantized bases with adapters.
    for (const TechniqueStep& step : technique_steps())
      if (!step.says_more(options_) && step.says_more(with_techniques(options_, together))) {
        together.push_back(step);
        if (!add("together: " + names(together), together)) together.pop_back();
      }
    return std::move(rows_);
  }

 private:
  // A row; false if the techniques do not apply here, or the lower tiers are too small for them.
  bool add(const std::string& name, const std::vector<TechniqueStep>& steps) {
    std::map<std::string, std::string> techniques;
    for (const TechniqueStep& step : steps) techniques[std::string(step.name())] = step.setting();
    try {
      const TrainOptions options = with_techniques(options_, steps);
      const Plan plan = search_training_plan(training_request(options, model_)).plan;
      if (!plan.feasible) return false;
      const TechniqueKind kind = steps.empty() ? TechniqueKind::exact : steps.back().kind();
      append({name, techniques, kind, plan.peak_bytes, plan.step_seconds});
      return true;
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::usage || rows_.empty()) throw;
      return false;
    }
  }

  void append(LadderRow row) {
    const LadderRow& baseline = rows_.empty() ? row : rows_.front();
    row.saves_bytes = baseline.peak_bytes - row.peak_bytes;
    row.costs_seconds = row.step_seconds - baseline.step_seconds;
    row.fits = row.peak_bytes <= options_.machine.memory;
    rows_.push_back(std::move(row));
  }

  static std::string names(const std::vector<TechniqueStep>& steps) {
    std::string out;
    for (const TechniqueStep& step : steps) out += (out.empty() ? "" : " + ") + std::string(step.name());
    return out;
  }

  const TrainOptions& options_;
  const ModelFiles& model_;
  std::vector<LadderRow> rows_;
};

std::string signed_bytes(int64_t bytes) { return (bytes < 0 ? "-" : "") + format_bytes(bytes < 0 ? -bytes : bytes); }

// "together: a + b + c", shortened after the row before: "+ c".
std::string shown_name(const LadderRow& row) {
  const size_t last = row.name.rfind(" + ");
  return last == std::string::npos ? row.name : row.name.substr(last + 1);
}

}  // namespace

std::vector<LadderRow> technique_ladder(const TrainOptions& options, const ModelFiles& model) {
  return Ladder(options, model).rows();
}

std::string ladder_json(const std::vector<LadderRow>& rows) {
  Json list = Json::array();
  for (const LadderRow& row : rows)
    list.push_back({{"name", row.name},
                    {"techniques", row.techniques},
                    {"kind", std::string(kind_name(row.kind))},
                    {"peak_bytes", row.peak_bytes},
                    {"step_seconds", row.step_seconds},
                    {"saves_bytes", row.saves_bytes},
                    {"costs_seconds", row.costs_seconds},
                    {"feasible_in_budget", row.fits}});
  return Json{{"rungs", std::move(list)}}.dump(2) + "\n";
}

std::string ladder_text(const std::vector<LadderRow>& rows, int64_t budget_bytes) {
  std::string out = fmt::format("budget {}\n{:<24} {:<14} {:>10} {:>10} {:>10} {:>10}\n", format_bytes(budget_bytes),
                                "technique", "kind", "peak", "saves", "step s", "costs s");
  bool together = false;
  for (const LadderRow& row : rows) {
    if (row.name.starts_with("together: ") && !together) {
      together = true;
      const size_t begin = row.name.find(' ') + 1;
      out += "together, from " + row.name.substr(begin, row.name.find(" + ") - begin) + " on\n";
    }
    out += fmt::format("{:<24} {:<14} {:>10} {:>10} {:>10.3f} {:>+10.3f}{}\n", shown_name(row), kind_name(row.kind),
                       format_bytes(row.peak_bytes), signed_bytes(row.saves_bytes), row.step_seconds, row.costs_seconds,
                       row.fits ? "  fits" : "");
  }
  return out;
}

}  // namespace headroom
