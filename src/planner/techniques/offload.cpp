#include "planner/techniques/offload.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>

#include "base/bytes.h"
#include "base/error.h"
#include "passes/offload_activations.h"
#include "passes/prefetch.h"

namespace headroom {
namespace {

constexpr int64_t kMostPrefetch = 64;

// The combinations that are tried: optimizer, gradients, parameters, each with any number of layers' activations.
constexpr std::array<std::array<bool, 3>, 5> kLevels{
    {{false, false, false}, {true, false, false}, {true, true, false}, {false, false, true}, {true, true, true}}};

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

// Techniques that keep the values of a number of layers.
bool counts_layers(std::string_view name) {
  return name == kOffloadActivations.name || name == kOffloadParameters.name;
}

// off, on, TIER; for techniques that count layers also LAYERS and TIER:LAYERS.
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

// The options that give a request a tier, or either of them.
std::string budget_option(const PlanRequest& request, std::optional<Tier> tier) {
  const bool hosted = !request.facts.is_cpu();
  if (tier == Tier::disk || (!tier && !hosted)) return "add --disk-memory DIR:BYTES";
  if (!hosted) return "on the CPU device and host share memory: use off, or disk with --disk-memory DIR:BYTES";
  return tier ? "add --host-memory BYTES" : "add --host-memory BYTES, or --disk-memory DIR:BYTES";
}

// Whether the earlier decisions allow a level: a pinned one always is.
bool open(const PlanRequest& request, const Candidate& decided, const std::array<bool, 3>& level, size_t which) {
  for (size_t earlier = 0; earlier < which; ++earlier) {
    const Technique& technique = *offload_techniques()[earlier];
    if (!offload_pin(request, technique.name()) && decided[technique].taken() != level[earlier]) return false;
  }
  return true;
}

}  // namespace

std::array<const Technique*, 4> offload_techniques() {
  return {&techniques::offload_optimizer, &techniques::offload_gradients, &techniques::offload_parameters,
          &techniques::offload_activations};
}

bool offloads(const Candidate& candidate) {
  const auto techniques = offload_techniques();
  return std::any_of(techniques.begin(), techniques.end(),
                     [&](const Technique* technique) { return candidate[*technique].taken(); });
}

bool offloads_all(const Candidate& candidate, int64_t layers) {
  return candidate[techniques::offload_optimizer].taken() && candidate[techniques::offload_parameters].taken() &&
         candidate[techniques::offload_activations].count >= layers;
}

KeptIn::KeptIn(const Candidate& candidate)
    : optimizer(candidate[techniques::offload_optimizer].tier),
      gradients(candidate[techniques::offload_gradients].tier),
      parameters(candidate[techniques::offload_parameters].tier),
      activations(candidate[techniques::offload_activations].tier) {}

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

int64_t pinned_layers(const PlanRequest& request, std::string_view name, int64_t blocks, int64_t all) {
  const std::optional<OffloadPin> pinned = offload_pin(request, name);
  return pinned && pinned->layers > 0 ? std::min(pinned->layers, blocks) : all;
}

std::optional<int64_t> pinned_prefetch(const PlanRequest& request) {
  const std::string text = pin(request, kPrefetch.name);
  if (text.empty()) return std::nullopt;
  return text == "on" ? 1 : text == "off" ? 0 : number(text);
}

void check_prefetch(const PlanRequest&, const std::string& setting) {
  const int64_t windows = number(setting);
  if (setting == "on" || setting == "off" || (windows >= 0 && windows <= kMostPrefetch)) return;
  throw Error(ErrorKind::usage, fmt::format("'{}' is not a setting of technique {}", setting, kPrefetch.name),
              fmt::format("off, or a number of windows of at most {}", kMostPrefetch));
}

void check_offload(const PlanRequest& request, const PassInfo& info, const std::string& value) {
  const bool counts = counts_layers(info.name);
  const std::optional<OffloadPin> setting = parse_setting(value, counts);
  if (!setting)
    throw Error(
        ErrorKind::usage, fmt::format("'{}' is not a setting of technique {}", value, info.name),
        counts ? "one of on, off, host, disk, a number of layers, or both: disk:12" : "one of on, off, host, disk");
  const std::vector<Tier> tiers = offload_tiers(request);
  if (setting->off ||
      (setting->tier ? std::find(tiers.begin(), tiers.end(), *setting->tier) != tiers.end() : !tiers.empty()))
    return;
  const std::string_view lacking = setting->tier == Tier::host   ? "host memory below the device"
                                   : setting->tier == Tier::disk ? "a disk"
                                                                 : "host memory or a disk below the device";
  throw Error(ErrorKind::usage, fmt::format("--technique {}={} needs a budget for {}", info.name, value, lacking),
              budget_option(request, setting->tier));
}

Verdict needs_lower_tier(const PlanRequest& request) {
  if (!offload_tiers(request).empty()) return {};
  return {"there is no tier below the device's memory (--host-memory, --disk-memory)", ""};
}

std::vector<Setting> offload_choices(const PlanRequest& request, const Candidate& decided, size_t which,
                                     int64_t layers) {
  const std::string_view name = offload_techniques()[which]->name();
  if (offload_tiers(request).empty()) return {Setting{}};
  const Tier tier = allowed_tiers(request, name).front();
  const Setting taken = tier == Tier::device ? Setting{} : Setting{.count = layers, .tier = tier};
  if (offload_pin(request, name)) return {taken};
  std::vector<Setting> out;
  for (const std::array<bool, 3>& level : kLevels)
    if (const Setting choice = level[which] ? taken : Setting{};
        open(request, decided, level, which) && std::find(out.begin(), out.end(), choice) == out.end())
      out.push_back(choice);
  return out;
}

std::string tier_setting(Tier tier) { return std::string(tier == Tier::device ? "off" : tier_name(tier)); }

std::string tier_setting(Tier tier, int64_t layers) {
  return tier == Tier::device || layers == kEveryLayer ? tier_setting(tier)
                                                       : fmt::format("{}:{}", tier_name(tier), layers);
}

std::string describe_offload(const Candidate& candidate, const TierBytes& peaks) {
  if (!offloads(candidate)) return {};
  std::string text;
  for (const Tier tier : kLowerTiers) {
    std::vector<std::string> kept;
    for (const Technique* technique : offload_techniques())
      if (const Setting& setting = candidate[*technique]; setting.tier == tier)
        kept.push_back(technique->phrase(setting));
    if (!kept.empty())
      text += fmt::format("{} of {}: {}; ", format_bytes(peaks.of(tier)), tier_name(tier), fmt::join(kept, ", "));
  }
  return fmt::format("{}prefetch {}", text, prefetch_of(candidate));
}

}  // namespace headroom
