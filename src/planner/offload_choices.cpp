#include "planner/offload_choices.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "base/error.h"
#include "passes/offload_activations.h"
#include "passes/offload_gradients.h"
#include "passes/offload_optimizer.h"
#include "passes/offload_parameters.h"
#include "passes/prefetch.h"

namespace headroom {
namespace {

constexpr std::string_view kNames[] = {kOffloadOptimizer.name, kOffloadGradients.name, kOffloadParameters.name,
                                       kOffloadActivations.name, kPrefetch.name};
constexpr int64_t kMostPrefetch = 64;

// A number of at most six digits, or -1.
int64_t number(std::string_view text) {
  int64_t value = -1;
  if (text.empty() || text.size() > 6) return -1;
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), value);
  return status == std::errc() && end == text.data() + text.size() ? value : -1;
}

// Pinned settings stand; the others follow `wish`.
Offload pinned(const PlanRequest& request, Offload wish, int64_t blocks) {
  const auto flag = [&](const PassInfo& info, bool& value) {
    const std::string text = pin(request, info.name);
    if (!text.empty()) value = text == "on";
  };
  flag(kOffloadOptimizer, wish.optimizer);
  flag(kOffloadGradients, wish.gradients);
  flag(kOffloadParameters, wish.parameters);
  if (const std::string text = pin(request, kOffloadActivations.name); !text.empty())
    wish.activation_blocks = text == "on" ? blocks : text == "off" ? 0 : std::min(number(text), blocks);
  if (const std::string text = pin(request, kPrefetch.name); !text.empty())
    wish.prefetch = text == "on" ? 1 : text == "off" ? 0 : number(text);
  return wish;
}

}  // namespace

std::vector<Tier> offload_tiers(const PlanRequest& request) {
  std::vector<Tier> tiers;
  for (const Tier tier : kLowerTiers)
    if (request.budgets().of(tier) > 0) tiers.push_back(tier);
  return tiers;
}

bool is_offload_technique(std::string_view name) {
  return std::find(std::begin(kNames), std::end(kNames), name) != std::end(kNames);
}

void check_offload_pin(const PlanRequest& request, const std::string& name, const std::string& value) {
  const int64_t parsed = number(value);
  const bool counts =
      name == kPrefetch.name ? parsed >= 0 && parsed <= kMostPrefetch : name == kOffloadActivations.name && parsed >= 1;
  if (value != "on" && value != "off" && !counts)
    throw Error(ErrorKind::usage, fmt::format("--technique {}={} is no setting of it", name, value),
                name == kPrefetch.name             ? "off, or a number of windows of at most 64"
                : name == kOffloadActivations.name ? "on, off, or a number of layers"
                                                   : "one of on, off");
  if (value == "off" || name == kPrefetch.name || !offload_tiers(request).empty()) return;
  throw Error(ErrorKind::usage,
              fmt::format("--technique {}={} needs memory of the host or a disk below that of the device", name, value),
              "add --disk-memory DIR:BYTES, or --host-memory for a device that has memory of its own");
}

std::vector<Offload> offload_choices(const PlanRequest& request, int64_t blocks) {
  const std::vector<Tier> tiers = offload_tiers(request);
  if (tiers.empty()) return {Offload{}};
  const Offload levels[] = {{}, {true}, {true, true}, {false, false, true}, {true, true, true}};
  std::vector<Offload> out;
  for (const Tier tier : tiers)
    for (Offload level : levels)
      for (const int64_t treated : {int64_t{0}, blocks / 2, blocks}) {
        level.activation_blocks = treated;
        Offload choice = pinned(request, level, blocks);
        if (choice.any()) choice.tier = tier;
        if (std::find(out.begin(), out.end(), choice) == out.end()) out.push_back(choice);
      }
  return out;
}

std::vector<int64_t> prefetch_choices(const PlanRequest& request, const Offload& offload) {
  if (!offload.any() || !pin(request, kPrefetch.name).empty()) return {};
  return {0, 2, 4};
}

std::string describe_offload(const Offload& offload) {
  if (!offload.any()) return {};
  std::string text;
  const auto add = [&](bool on, const std::string& what) {
    if (on) text += (text.empty() ? "" : ", ") + what;
  };
  add(offload.optimizer, "states");
  add(offload.gradients, "gradients");
  add(offload.parameters, "weights");
  add(offload.activation_blocks > 0, fmt::format("activations of {} layers", offload.activation_blocks));
  return fmt::format("{}; prefetch {}", text, offload.prefetch);
}

}  // namespace headroom
