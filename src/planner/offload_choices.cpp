#include "planner/offload_choices.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>

#include "base/bytes.h"
#include "base/error.h"
#include "passes/offload_activations.h"
#include "passes/offload_gradients.h"
#include "passes/offload_optimizer.h"
#include "passes/offload_parameters.h"
#include "passes/prefetch.h"

namespace headroom {
namespace {

constexpr int64_t kMostPrefetch = 64;

// A technique and where it says what it keeps lies.
struct OffloadTechnique {
  std::string_view name;
  Tier Offload::*tier;
};
constexpr OffloadTechnique kTechniques[] = {{kOffloadOptimizer.name, &Offload::optimizer},
                                            {kOffloadGradients.name, &Offload::gradients},
                                            {kOffloadParameters.name, &Offload::parameters},
                                            {kOffloadActivations.name, &Offload::activations}};

// A number of at most six digits, or -1.
int64_t number(std::string_view text) {
  int64_t value = -1;
  if (text.empty() || text.size() > 6) return -1;
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), value);
  return status == std::errc() && end == text.data() + text.size() ? value : -1;
}

std::optional<Tier> lower_tier(std::string_view text) {
  for (const Tier tier : kLowerTiers)
    if (tier_name(tier) == text) return tier;
  return std::nullopt;
}

// Techniques that keep what belongs to a number of layers.
bool counts_layers(std::string_view name) {
  return name == kOffloadActivations.name || name == kOffloadParameters.name;
}

// off, on, TIER; of what counts layers also LAYERS and TIER:LAYERS.
std::optional<OffloadPin> parse_setting(std::string_view text, bool counts) {
  if (text == "off") return OffloadPin{true, {}, 0};
  if (text == "on") return OffloadPin{};
  if (const std::optional<Tier> tier = lower_tier(text)) return OffloadPin{false, tier, 0};
  if (!counts) return std::nullopt;
  OffloadPin setting;
  if (const size_t colon = text.find(':'); colon != text.npos) {
    if (!(setting.tier = lower_tier(text.substr(0, colon)))) return std::nullopt;
    text.remove_prefix(colon + 1);
  }
  setting.layers = number(text);
  return setting.layers >= 1 ? std::optional(setting) : std::nullopt;
}

// What a choice keeps below the device.
struct Level {
  bool optimizer = false;
  bool gradients = false;
  bool parameters = false;
};

// The layers that a technique's pin counts, at most `blocks`; else every one.
int64_t pinned_layers(const PlanRequest& request, std::string_view name, int64_t blocks) {
  const std::optional<OffloadPin> pinned = offload_pin(request, name);
  return pinned && pinned->layers > 0 ? std::min(pinned->layers, blocks) : kEveryLayer;
}

// Pinned settings stand; the others follow `level` and `treated`, the layers whose activations leave the device.
Offload settle(const PlanRequest& request, const Level& level, int64_t treated, int64_t blocks) {
  Offload out;
  const bool wished[] = {level.optimizer, level.gradients, level.parameters, treated > 0};
  for (size_t i = 0; i < std::size(kTechniques); ++i)
    if (wished[i] || offload_pin(request, kTechniques[i].name))
      out.*kTechniques[i].tier = allowed_tiers(request, kTechniques[i].name).front();
  if (out.parameters != Tier::device) out.parameter_layers = pinned_layers(request, kOffloadParameters.name, blocks);
  if (offload_pin(request, kOffloadActivations.name))
    treated = std::min(pinned_layers(request, kOffloadActivations.name, blocks), blocks);
  if (treated == 0) out.activations = Tier::device;
  if (out.activations != Tier::device) out.activation_blocks = treated;
  out.prefetch = pinned_prefetch(request).value_or(out.prefetch);
  return out;
}

void check_prefetch(const std::string& value) {
  const int64_t windows = number(value);
  if (value == "on" || value == "off" || (windows >= 0 && windows <= kMostPrefetch)) return;
  throw Error(ErrorKind::usage, fmt::format("--technique {}={} is no setting of it", kPrefetch.name, value),
              fmt::format("off, or a number of windows of at most {}", kMostPrefetch));
}

// The options that give a request a tier, or either one.
std::string budget_option(const PlanRequest& request, std::optional<Tier> tier) {
  const bool hosted = !request.facts.is_cpu();
  if (tier == Tier::disk || (!tier && !hosted)) return "add --disk-memory DIR:BYTES";
  if (!hosted) return "the CPU's memory is the host's: say off, or disk with --disk-memory DIR:BYTES";
  return tier ? "add --host-memory BYTES" : "add --host-memory BYTES, or --disk-memory DIR:BYTES";
}

}  // namespace

std::vector<Tier> offload_tiers(const PlanRequest& request) {
  std::vector<Tier> tiers;
  for (const Tier tier : kLowerTiers)
    if (request.budgets().of(tier) > 0) tiers.push_back(tier);
  return tiers;
}

std::optional<OffloadPin> offload_pin(const PlanRequest& request, std::string_view name) {
  const std::string text = pin(request, name);
  return text.empty() ? std::nullopt : parse_setting(text, counts_layers(name));
}

std::vector<Tier> allowed_tiers(const PlanRequest& request, std::string_view name) {
  const std::optional<OffloadPin> pinned = offload_pin(request, name);
  if (pinned && pinned->off) return {Tier::device};
  return pinned && pinned->tier ? std::vector{*pinned->tier} : offload_tiers(request);
}

std::optional<int64_t> pinned_prefetch(const PlanRequest& request) {
  const std::string text = pin(request, kPrefetch.name);
  if (text.empty()) return std::nullopt;
  return text == "on" ? 1 : text == "off" ? 0 : number(text);
}

bool is_offload_technique(std::string_view name) {
  return name == kPrefetch.name || std::any_of(std::begin(kTechniques), std::end(kTechniques),
                                               [&](const OffloadTechnique& each) { return each.name == name; });
}

void check_offload_pin(const PlanRequest& request, const std::string& name, const std::string& value) {
  if (name == kPrefetch.name) return check_prefetch(value);
  const bool counts = counts_layers(name);
  const std::optional<OffloadPin> setting = parse_setting(value, counts);
  if (!setting)
    throw Error(
        ErrorKind::usage, fmt::format("--technique {}={} is no setting of it", name, value),
        counts ? "one of on, off, host, disk, a number of layers, or both: disk:12" : "one of on, off, host, disk");
  const std::vector<Tier> tiers = offload_tiers(request);
  if (setting->off ||
      (setting->tier ? std::find(tiers.begin(), tiers.end(), *setting->tier) != tiers.end() : !tiers.empty()))
    return;
  const std::string_view lacking = setting->tier == Tier::host   ? "the host below the device"
                                   : setting->tier == Tier::disk ? "a disk"
                                                                 : "the host or a disk below the device";
  throw Error(ErrorKind::usage, fmt::format("--technique {}={} needs a budget of {}", name, value, lacking),
              budget_option(request, setting->tier));
}

std::vector<Offload> offload_choices(const PlanRequest& request, int64_t blocks) {
  if (offload_tiers(request).empty()) return {Offload{}};
  constexpr Level kLevels[] = {{}, {true}, {true, true}, {false, false, true}, {true, true, true}};
  std::vector<Offload> out;
  for (const Level& level : kLevels)
    for (const int64_t treated : {int64_t{0}, blocks / 2, blocks})
      if (const Offload choice = settle(request, level, treated, blocks);
          std::find(out.begin(), out.end(), choice) == out.end())
        out.push_back(choice);
  return out;
}

std::vector<Offload> tier_choices(const PlanRequest& request, const Offload& offload) {
  std::vector<Offload> out{offload};
  for (const OffloadTechnique& technique : kTechniques) {
    if (offload.*technique.tier == Tier::device) continue;
    const std::vector<Tier> tiers = allowed_tiers(request, technique.name);
    const std::vector<Offload> so_far = out;
    for (size_t i = 1; i < tiers.size(); ++i)
      for (Offload placed : so_far) {
        placed.*technique.tier = tiers[i];
        out.push_back(placed);
      }
  }
  return out;
}

std::vector<int64_t> prefetch_choices(const PlanRequest& request, const Offload& offload) {
  if (!offload.any() || !pin(request, kPrefetch.name).empty()) return {};
  return {0, 2, 4};
}

std::string tier_setting(Tier tier) { return std::string(tier == Tier::device ? "off" : tier_name(tier)); }

std::string tier_setting(Tier tier, int64_t layers) {
  return tier == Tier::device || layers == kEveryLayer ? tier_setting(tier)
                                                       : fmt::format("{}:{}", tier_name(tier), layers);
}

std::string tier_option(Tier tier, int64_t bytes) {
  return fmt::format("--{}-memory {}{}", tier_name(tier), tier == Tier::disk ? "DIR:" : "", bytes);
}

std::string describe_offload(const Offload& offload, const TierBytes& peaks) {
  if (!offload.any()) return {};
  std::string text;
  for (const Tier tier : kLowerTiers) {
    std::vector<std::string> kept;
    if (offload.optimizer == tier) kept.emplace_back("states");
    if (offload.gradients == tier) kept.emplace_back("gradients");
    if (offload.parameters == tier)
      kept.push_back(offload.parameter_layers == kEveryLayer
                         ? "weights"
                         : fmt::format("weights of {} layers", offload.parameter_layers));
    if (offload.activations == tier) kept.push_back(fmt::format("activations of {} layers", offload.activation_blocks));
    if (!kept.empty())
      text += fmt::format("{} of {}: {}; ", format_bytes(peaks.of(tier)), tier_name(tier), fmt::join(kept, ", "));
  }
  return fmt::format("{}prefetch {}", text, offload.prefetch);
}

}  // namespace headroom
