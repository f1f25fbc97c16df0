// Another device, another model (T26, T43).
#include <fmt/format.h>

#include "doctor/remedies/figures.h"
#include "doctor/remedies/rules.h"

namespace headroom::doctor {
namespace {

// A possible replacement: of the same vendor, and with every kind of unit that this device has.
bool comparable(const Gpu& gpu, const std::optional<Gpu>& now) {
  if (gpu.name == "CPU") return false;
  if (!now || now->name == "CPU") return gpu.compute_capability > 0;
  return (gpu.compute_capability > 0) == (now->compute_capability > 0) && gpu.bf16 >= now->bf16 &&
         gpu.flash_attention >= now->flash_attention;
}

const Gpu* smallest_of_all(const CaseView& s, bool surely) {
  const Gpu* best = nullptr;
  for (const Gpu& gpu : known_gpus()) {
    if (!comparable(gpu, s.gpu()) || gpu.memory_bytes <= s.balance().limit.value_or(0)) continue;
    if (best && best->memory_bytes <= gpu.memory_bytes) continue;
    if (s.fits_on(gpu, surely)) best = &gpu;
  }
  return best;
}

void larger_gpu(const CaseView& s, Findings& findings) {
  if (s.pool() != Pool::device || !s.balance().need || (!s.message() && s.fits_after({}))) return;
  const Gpu* best = smallest_of_all(s, true);
  if (!best) best = smallest_of_all(s, false);
  if (!best) return findings.refuse("larger-gpu", "no single GPU that doctor knows is large enough");
  Remedy remedy =
      make_remedy(s, "larger-gpu",
                  {{"gpu", fmt::format("a GPU of {} or more, such as {}", figure(best->memory_bytes), best->name)}}, {},
                  "the smallest that fits; --which-gpu lists all");
  remedy.fits_alone = !s.message() && s.fits_on(*best, true);  // a failure on another device proves nothing
  remedy.likely_alone = s.incident().estimate.has_value();
  if (!s.incident().estimate) remedy.caveats.push_back("the message tells the least that is needed, not all");
  findings.offer(std::move(remedy));
}

void smaller_model(const CaseView& s, Findings& findings) {
  if (s.pool() != Pool::device || !s.shape() || !s.balance().need || !s.balance().limit) return;
  if (s.serving() || fits(*s.balance().need, *s.balance().limit)) return;
  // Most of the need grows with the parameters: the bytes per parameter now give the number that would fit.
  const double share = kFitShare * static_cast<double>(*s.balance().limit) / static_cast<double>(*s.balance().need);
  const double parameters = s.shape()->parameters * share;
  const std::string text =
      parameters >= 1e9 ? fmt::format("{:.1f}B", parameters / 1e9) : fmt::format("{:.0f}M", parameters / 1e6);
  Remedy remedy =
      make_remedy(s, "smaller-model", {{"params", text}}, {}, "the choice of model has the largest effect of all");
  remedy.saves_bytes = *s.balance().need - static_cast<int64_t>(static_cast<double>(*s.balance().need) * share);
  remedy.likely_alone = true;  // in proportion, without its own estimate
  findings.offer(std::move(remedy));
}

constexpr Rule kRules[] = {larger_gpu, smaller_model};

}  // namespace

std::span<const Rule> hardware_rules() { return kRules; }

}  // namespace headroom::doctor
