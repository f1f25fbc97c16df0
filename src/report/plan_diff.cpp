#include "report/plan_diff.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <map>

#include "base/error.h"

namespace headroom::report {
namespace {

PlanFile read_whole_plan(const std::filesystem::path& file) {
  PlanFile plan;
  try {
    plan = read_plan_file(file);
  } catch (const Error& error) {
    throw Error(error.kind(), error.what(), "give two plans as `headroom plan --json` or `headroom train` writes them");
  }
  if (!plan.feasible)
    throw Error(ErrorKind::usage, fmt::format("{}: the plan does not fit its budget: it has no peak", file.string()),
                fmt::format("plan it with --memory {} or more", plan.minimum));
  return plan;
}

// A's names in their order, then those that only B has.
template <typename Rows, typename Name>
std::vector<std::string> names_of(const Rows& a, const Rows& b, Name name) {
  std::vector<std::string> out;
  for (const Rows* rows : {&a, &b})
    for (const auto& row : *rows)
      if (std::find(out.begin(), out.end(), name(row)) == out.end()) out.push_back(name(row));
  return out;
}

std::string value_of(const std::vector<TechniqueReport>& techniques, const std::string& name) {
  for (const TechniqueReport& technique : techniques)
    if (technique.name == name) return technique.value;
  return "";
}

int64_t bytes_of(const std::vector<std::pair<std::string, int64_t>>& classes, const std::string& name) {
  for (const auto& [known, bytes] : classes)
    if (known == name) return bytes;
  return 0;
}

void compare_requests(const PlanFile& a, const PlanFile& b, PlanDiff& diff) {
  const auto add = [&](const char* name, std::string of_a, std::string of_b) {
    if (of_a != of_b) diff.request.push_back({name, {std::move(of_a), std::move(of_b)}});
  };
  const auto model = [](const PlanFile& plan) { return fmt::format("{}, {} parameters", plan.model, plan.parameters); };
  const auto batch = [](const PlanFile& plan) { return fmt::format("{} x {}", plan.accumulation, plan.micro_batch); };
  add("model", model(a), model(b));
  add("tokens a sequence", std::to_string(a.seq_length), std::to_string(b.seq_length));
  add("batch", batch(a), batch(b));
  add("precision", a.precision, b.precision);
  add("threads", std::to_string(a.threads), std::to_string(b.threads));
  add("profile", a.profile, b.profile);
}

void compare_techniques(const PlanFile& a, const PlanFile& b, PlanDiff& diff) {
  for (const std::string& name : names_of(a.techniques, b.techniques, [](const auto& row) { return row.name; })) {
    const std::string of_a = value_of(a.techniques, name), of_b = value_of(b.techniques, name);
    if (of_a != of_b) diff.techniques.push_back({name, {of_a, of_b}});
  }
}

using Named = std::vector<std::pair<std::string, int64_t>>;

std::vector<PlanDiff::Figures> compare_figures(const Named& a, const Named& b) {
  std::vector<PlanDiff::Figures> out;
  for (const std::string& name : names_of(a, b, [](const auto& row) { return row.first; }))
    out.push_back({name, {bytes_of(a, name), bytes_of(b, name)}});
  return out;
}

void compare_tensors(const PlanFile& a, const PlanFile& b, PlanDiff& diff) {
  diff.knows_tensors = !a.tensors.empty() && !b.tensors.empty();
  if (!diff.knows_tensors) return;
  std::map<std::pair<MemoryClass, std::string>, std::array<int64_t, 2>> bytes;
  for (const TensorGroup& group : a.tensors) bytes[{group.kind, group.name}][0] += group.bytes;
  for (const TensorGroup& group : b.tensors) bytes[{group.kind, group.name}][1] += group.bytes;
  for (const auto& [key, both] : bytes)
    if (both[0] != both[1]) diff.tensors.push_back({key.second, both, std::string(memory_class_name(key.first))});
  std::stable_sort(
      diff.tensors.begin(), diff.tensors.end(),
      [](const PlanDiff::Figures& x, const PlanDiff::Figures& y) { return std::abs(x.more()) > std::abs(y.more()); });
}

}  // namespace

PlanDiff plan_diff(const std::filesystem::path& file_a, const std::filesystem::path& file_b) {
  const PlanFile a = read_whole_plan(file_a), b = read_whole_plan(file_b);
  PlanDiff diff;
  diff.budget = {a.budget, b.budget};
  diff.peak = {a.peak, b.peak};
  diff.process = {a.process, b.process};
  diff.step_seconds = {a.step_seconds, b.step_seconds};
  compare_requests(a, b, diff);
  compare_techniques(a, b, diff);
  diff.below = compare_figures(a.below, b.below);
  diff.breakdown = compare_figures(a.classes, b.classes);
  compare_tensors(a, b, diff);
  return diff;
}

}  // namespace headroom::report
