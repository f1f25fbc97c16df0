#include "optim/step_scalars.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/error.h"

namespace headroom {
namespace {

constexpr std::pair<std::string_view, int64_t> kOfEveryRun[] = {
    {"learning_rate", kLearningRate}, {"weight_decay", kWeightDecay}, {"loss_scale", kLossScale},
    {"max_grad_norm", kMaxGradNorm},  {"drawn_labels", kDrawnLabels}, {"unscale", kUnscale}};

}  // namespace

StepScalars::StepScalars(std::span<const std::string_view> own) : own_(own) {
  HR_CHECK(static_cast<int64_t>(own.size()) <= kOwnScalars, "{} scalars of an optimizer, at most {}", own.size(),
           kOwnScalars);
}

void StepScalars::set(std::string_view name, double value) {
  int64_t place = -1;
  for (const auto& [known, at] : kOfEveryRun)
    if (known == name) place = at;
  if (const auto at = std::find(own_.begin(), own_.end(), name); at != own_.end())
    place = kOwnScalar[at - own_.begin()];
  HR_CHECK(place >= 0, "a step has no scalar '{}'", name);
  values_[static_cast<size_t>(place)] = static_cast<float>(value);
}

void StepScalars::set_key(uint64_t seed, uint32_t step) {
  std::memcpy(values_.data() + kSeed, &seed, sizeof(seed));
  std::memcpy(values_.data() + kStep, &step, sizeof(step));
}

}  // namespace headroom
