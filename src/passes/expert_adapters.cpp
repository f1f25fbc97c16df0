#include "passes/expert_adapters.h"

#include <array>
#include <cmath>
#include <map>

#include "base/error.h"
#include "passes/freeze.h"
#include "passes/lora.h"

namespace headroom {
namespace {

constexpr std::string_view kExperts = ".experts.", kWeight = ".weight";

struct PartName {
  std::string_view name;
  ExpertPart part;
};
constexpr std::array<PartName, 6> kPartNames{{{"gate_proj", ExpertPart::gate},
                                              {"up_proj", ExpertPart::up},
                                              {"down_proj", ExpertPart::down},
                                              {"w1", ExpertPart::gate},
                                              {"w3", ExpertPart::up},
                                              {"w2", ExpertPart::down}}};

std::string_view part_name(ExpertPart part) {
  for (const PartName& known : kPartNames)
    if (known.part == part) return known.name;
  HR_CHECK(false, "an expert's weight without a name");
  return {};
}

std::string_view parameter_name(ExpertPart part) { return part == ExpertPart::down ? "down_proj" : "gate_up_proj"; }

std::string plan_name(const ExpertWeight& weight, std::string_view part, char which) {
  return fmt::format("{}{}.*.{}.lora_{}.weight", kAdapterPrefix, weight.module, part, which);
}

enum class Meant { nothing, parameter, module };

Meant meaning(const std::string& target, const std::string& name, const ExpertWeight& weight) {
  if (target == "all-linear") return Meant::module;
  const std::string module = name.substr(0, name.size() - kWeight.size()), parameter = weight.parameter();
  if (pattern_means(target, module)) return Meant::module;
  if (!pattern_means(target, parameter)) return Meant::nothing;
  return pattern_means(last_part(target), last_part(parameter)) ? Meant::parameter : Meant::module;
}

}  // namespace

std::string ExpertWeight::parameter() const { return fmt::format("{}.{}", module, parameter_name(part)); }

std::optional<ExpertWeight> expert_weight(std::string_view name) {
  const size_t at = name.rfind(kExperts);
  if (at == std::string_view::npos || !name.ends_with(kWeight)) return std::nullopt;
  const size_t begin = at + kExperts.size(), dot = name.find('.', begin);
  if (dot == std::string_view::npos || dot + 1 + kWeight.size() > name.size()) return std::nullopt;
  const std::string_view expert = name.substr(begin, dot - begin);
  const std::string_view last = name.substr(dot + 1, name.size() - dot - 1 - kWeight.size());
  for (const PartName& known : kPartNames)
    if (last == known.name)
      return ExpertWeight{transformers_name(name.substr(0, begin - 1)), std::string(expert), known.part};
  return std::nullopt;
}

std::string transformers_name(std::string_view name) {
  constexpr std::string_view kOld = ".block_sparse_moe.";
  std::string text(name);
  if (const size_t at = text.find(kOld); at != std::string::npos) text.replace(at, kOld.size(), ".mlp.");
  return text;
}

std::string expert_lora_a(const ExpertWeight& weight) { return plan_name(weight, parameter_name(weight.part), 'A'); }

std::string expert_lora_b(const ExpertWeight& weight) { return plan_name(weight, part_name(weight.part), 'B'); }

double adapter_factor(double alpha, int64_t rank, bool rank_stabilised) {
  const double divisor = static_cast<double>(rank);
  return alpha / (rank_stabilised ? std::sqrt(divisor) : divisor);
}

ExpertTargets::ExpertTargets(std::span<const std::string> weights, const LoraOptions& options) : options_(options) {
  std::map<std::string, std::map<ExpertPart, std::string>> halves;  // parameter, part, the targeted weight
  for (const std::string& name : weights) {
    const std::optional<ExpertWeight> weight = expert_weight(name);
    HR_CHECK(weight, "'{}' is not an expert's weight", name);
    for (const std::string& target : options.targets) {
      const Meant meant = meaning(target, name, *weight);
      if (meant == Meant::nothing) continue;
      used_.insert(target);
      parameters_.insert(weight->parameter());
      if (meant == Meant::module && weight->part != ExpertPart::down) halves[weight->parameter()][weight->part] = name;
    }
  }
  doubled_ = !halves.empty();
  for (const auto& [parameter, parts] : halves)
    if (parts.size() < 2)
      throw Error(
          ErrorKind::usage,
          fmt::format("--lora-target-modules names {} without the other half of {}", parts.begin()->second, parameter),
          "an expert's gate and up share one adapter, as in PEFT: name both, or experts.gate_up_proj");
}

ExpertTargets::Scale ExpertTargets::of(const ExpertWeight& weight) const {
  if (!parameters_.contains(weight.parameter())) return {};
  const int64_t times = doubled_ && weight.part != ExpertPart::down ? 2 : 1, rank = times * options_.rank;
  return {rank, adapter_factor(static_cast<double>(times) * options_.alpha, rank, options_.rank_stabilised)};
}

}  // namespace headroom
