// Another device, another model (T26, T43).
#include <fmt/format.h>

#include "doctor/remedies/figures.h"
#include "doctor/remedies/rules.h"

namespace headroom::doctor {
namespace {

void larger_gpu(const Situation& s, Findings& findings) {
  if (s.pool() != Pool::device || !s.balance().need) return;
  const Gpu* best = nullptr;
  for (const Gpu& gpu : known_gpus()) {
    if (gpu.name == "CPU" || gpu.memory_bytes <= s.balance().limit.value_or(0)) continue;
    if (!fits(*s.balance().need, gpu.memory_bytes)) continue;
    if (!best || gpu.memory_bytes < best->memory_bytes) best = &gpu;
  }
  if (!best) return findings.refuse("larger-gpu", "no single GPU that doctor knows is large enough");
  Remedy remedy =
      make_remedy(s, "larger-gpu",
                  {{"gpu", fmt::format("a GPU of {} or more, such as {}", figure(best->memory_bytes), best->name)}}, {},
                  "the smallest that fits; --which-gpu lists all");
  remedy.fits_alone = s.patient().estimate.has_value();
  remedy.slowdown = 1;
  if (!s.patient().estimate) remedy.caveats.push_back("the message tells the least that is needed, not all");
  findings.offer(std::move(remedy));
}

void smaller_model(const Situation& s, Findings& findings) {
  if (s.pool() != Pool::device || !s.shape() || !s.balance().need || !s.balance().limit) return;
  if (fits(*s.balance().need, *s.balance().limit)) return;
  // Most of the need grows with the parameters: what one parameter takes now tells how many there may be.
  const double share = kFitShare * static_cast<double>(*s.balance().limit) / static_cast<double>(*s.balance().need);
  const double parameters = s.shape()->parameters * share;
  const std::string text =
      parameters >= 1e9 ? fmt::format("{:.1f}B", parameters / 1e9) : fmt::format("{:.0f}M", parameters / 1e6);
  Remedy remedy =
      make_remedy(s, "smaller-model", {{"params", text}}, {}, "the choice of model has the largest effect of all");
  remedy.saves_bytes = *s.balance().need - static_cast<int64_t>(static_cast<double>(*s.balance().need) * share);
  remedy.fits_alone = true;
  findings.offer(std::move(remedy));
}

constexpr Rule kRules[] = {larger_gpu, smaller_model};

}  // namespace

std::span<const Rule> hardware_rules() { return kRules; }

}  // namespace headroom::doctor
