#include "engine/technique_step.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "planner/pipeline.h"

namespace headroom {
namespace {

// Among the lossy techniques of the ladder: after those that keep what is trained, before adapters and codes.
constexpr int kOptimizerPlace = 4;
constexpr std::string_view kOptimizerName = "optim", kOptimizerSetting = "8-bit";

constexpr std::string_view kPrecisionOption = "--precision";

// Options of techniques in the ladder.
struct StepOption {
  std::string_view name;
  bool (*open)(const TrainOptions&);  // not given yet, and it would change something
  void (*set)(TrainOptions&, const std::string& value);
};

constexpr StepOption kOptions[] = {
    {kPrecisionOption, [](const TrainOptions& o) { return o.techniques.precision == "32-true"; },
     [](TrainOptions& o, const std::string& value) { o.techniques.precision = value; }},
    {"--lora-r", [](const TrainOptions& o) { return o.techniques.lora.rank == 0; },
     [](TrainOptions& o, const std::string& value) { o.techniques.lora.rank = std::stoll(value); }},
    {"--micro-batch-size", [](const TrainOptions& o) { return o.data.global_batch_size > 1; },
     [](TrainOptions& o, const std::string& value) { o.data.micro_batch_size = std::stoll(value); }},
};

const StepOption& option_of(const Technique& technique) {
  const auto at = std::find_if(std::begin(kOptions), std::end(kOptions),
                               [&](const StepOption& option) { return option.name == technique.option.option; });
  HR_CHECK(at != std::end(kOptions), "the ladder cannot give {}", technique.option.option);
  return *at;
}

std::pair<TechniqueKind, int> ladder_order(const Technique& technique) {
  return {technique.info->kind, technique.ladder.at};
}

}  // namespace

std::string_view TechniqueStep::name() const { return technique_ ? technique_->name() : kOptimizerName; }

std::string_view TechniqueStep::setting() const { return technique_ ? technique_->usual : kOptimizerSetting; }

TechniqueKind TechniqueStep::kind() const { return technique_ ? technique_->info->kind : TechniqueKind::lossy; }

bool TechniqueStep::is_precision() const { return technique_ && technique_->option.option == kPrecisionOption; }

bool TechniqueStep::is_pin() const { return technique_ && technique_->option.option.empty(); }

bool TechniqueStep::says_more(const TrainOptions& options) const {
  if (!technique_) return !optimizer_in_8_bits(options.optimizer).empty();
  if (!is_pin()) return option_of(*technique_).open(options);
  const Technique* const beside = technique_->ladder.beside;
  return !beside ||
         (!option_of(*beside).open(options) && !options.techniques.pins.contains(std::string(technique_->name())));
}

std::pair<std::string, std::string> TechniqueStep::option(const TrainOptions& before) const {
  if (!technique_) return {std::string(kOptimizerName), std::string(optimizer_in_8_bits(before.optimizer))};
  auto [option, value] = asked_by(*technique_);
  return {option.substr(2), std::move(value)};
}

void TechniqueStep::take(TrainOptions& options) const {
  if (!technique_)
    options.optimizer.optim = optimizer_in_8_bits(options.optimizer);
  else if (is_pin())
    options.techniques.pins[std::string(technique_->name())] = technique_->usual;
  else
    option_of(*technique_).set(options, asked_by(*technique_).second);
}

std::vector<TechniqueStep> technique_steps() {
  std::vector<const Technique*> placed;
  for (const Technique* technique : all_techniques())
    if (technique->ladder.at > 0) placed.push_back(technique);
  std::sort(placed.begin(), placed.end(),
            [](const Technique* a, const Technique* b) { return ladder_order(*a) < ladder_order(*b); });
  std::vector<TechniqueStep> steps(placed.begin(), placed.end());
  const auto later = std::find_if(placed.begin(), placed.end(), [](const Technique* technique) {
    return ladder_order(*technique) > std::pair(TechniqueKind::lossy, kOptimizerPlace);
  });
  steps.insert(steps.begin() + (later - placed.begin()), TechniqueStep(nullptr));
  return steps;
}

}  // namespace headroom
