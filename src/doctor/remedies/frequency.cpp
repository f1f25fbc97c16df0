#include "doctor/remedies/frequency.h"

#include <algorithm>

#include "doctor/remedies/program_words.h"

namespace headroom::doctor {
namespace {

constexpr Frequency kOfOwnPrograms[] = {
    {"micro-batch", 0.41},  {"input-size", 0.25},          {"no-grad", 0.10},        {"smaller-model", 0.05},
    {"map-location", 0.05}, {"end-other-processes", 0.05}, {"detach-history", 0.05}, {"low-vram", 0.03},
};
constexpr Frequency kOfTensorflow[] = {
    {"micro-batch", 0.50},
    {"grow-on-demand", 0.20},
    {"end-other-processes", 0.20},
    {"input-size", 0.10},
};
constexpr Frequency kOfHosts[] = {
    {"host-memory", 0.48}, {"fewer-workers", 0.21}, {"shared-memory", 0.17},   {"more-swap", 0.11},
    {"lean-load", 0.11},   {"no-offload", 0.05},    {"pageable-memory", 0.03}, {"detach-history", 0.03},
};

// Nothing else supports it: it is told in the words of any program.
void say_for_any_program(Remedy& remedy) {
  if (remedy.name != "micro-batch" || remedy.evidence > 0 || !written_for_pytorch(remedy.set)) return;
  remedy.set = "a smaller batch: fewer images, rows or prompts at a time";
  remedy.settings.clear();
}

// One that solved a fifth of its kind's threads is worth a place.
constexpr double kFrequent = 0.2;

}  // namespace

std::span<const Frequency> frequencies(ThreadKind kind) {
  if (kind == ThreadKind::own_program) return kOfOwnPrograms;
  if (kind == ThreadKind::tensorflow) return kOfTensorflow;
  return kOfHosts;
}

double frequency(ThreadKind kind, std::string_view technique) {
  for (const Frequency& each : frequencies(kind))
    if (each.technique == technique) return each.share;
  return 0;
}

void place_the_frequent(ThreadKind kind, std::vector<Remedy>& remedies) {
  constexpr size_t kShown = 3;
  // The third advice of a situation with signs of its own has more; that of a usual cause has less.
  constexpr double kOwnEvidence = 0.65, kFar = 2;
  if (remedies.size() <= kShown) return;
  const Remedy& third = remedies[kShown - 1];
  if (third.evidence >= kOwnEvidence || third.fits_alone || third.likely_alone) return;
  for (const Frequency& each : frequencies(kind)) {
    if (each.share < kFrequent || each.share < kFar * frequency(kind, third.name)) return;
    const auto found = std::find_if(remedies.begin(), remedies.end(),
                                    [&](const Remedy& remedy) { return remedy.name == each.technique; });
    if (found == remedies.end() || found - remedies.begin() < static_cast<std::ptrdiff_t>(kShown)) continue;
    if (found->attempted) continue;
    std::rotate(remedies.begin() + kShown - 1, found, found + 1);
    say_for_any_program(remedies[kShown - 1]);
    return;
  }
}

}  // namespace headroom::doctor
