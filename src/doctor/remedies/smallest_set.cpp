#include "doctor/remedies/smallest_set.h"

#include <algorithm>

#include "doctor/remedies/changes.h"
#include "doctor/remedies/conflicts.h"
#include "doctor/remedies/rules.h"

namespace headroom::doctor {
namespace {

constexpr size_t kCandidates = 16, kMembers = 4, kHalvings = 6;

// The remedy in all sizes: half the batch, a quarter, ...
std::vector<Remedy> sizes_of(const CaseView& s, const Remedy& remedy) {
  std::vector<Remedy> sizes;
  const auto add = [&](Remedy size) {
    size.cost = cost_of(size);
    if (size.available && sizes.size() < kHalvings) sizes.push_back(std::move(size));
  };
  if (remedy.name == "micro-batch" && s.micro_batch())
    for (int64_t micro = *s.micro_batch() / 2; micro >= 1; micro /= 2) add(micro_batch_remedy(s, micro));
  if ((remedy.name == "sequence-length" || remedy.name == "shorter-pack") && s.sequence())
    for (int64_t tokens = *s.sequence() / 2; tokens >= kLeastSequence; tokens /= 2) add(sequence_remedy(s, tokens));
  return sizes.empty() ? std::vector<Remedy>{remedy} : sizes;
}

struct Search {
  const CaseView& view;
  bool surely = true;
  std::vector<Remedy> candidates{};  // by cost
  std::optional<FittingSet> best{};

  bool goes_with(const Remedy& remedy, const FittingSet& set) const {
    return std::all_of(set.members.begin(), set.members.end(),
                       [&](const Remedy& member) { return conflict_of(remedy, member, view.job().system).empty(); });
  }

  // Extends `set` by candidates from `next` on until it has `size` members.
  void extend(const FittingSet& set, size_t next, size_t size) {
    for (size_t i = next; i < candidates.size(); ++i) {
      const Remedy& remedy = candidates[i];
      if (best && set.cost + remedy.cost >= best->cost) return;  // further candidates cost no less
      if (!goes_with(remedy, set)) continue;
      FittingSet larger = set;
      larger.members.push_back(remedy);
      larger.changes = together(larger.changes, remedy.changes);
      larger.cost += remedy.cost;
      if (larger.members.size() < size)
        extend(larger, i + 1, size);
      else if (surely ? view.fits_after(larger.changes) : view.likely_after(larger.changes))
        best = std::move(larger);
    }
  }
};

bool cheaper(const Remedy& a, const Remedy& b) { return a.cost < b.cost; }

}  // namespace

std::optional<FittingSet> smallest_fitting_set(const CaseView& view, const std::vector<Remedy>& remedies, bool surely) {
  Search search{view, surely};
  std::vector<Remedy> combined;
  std::optional<FittingSet> otherwise;
  for (const Remedy& remedy : remedies) {
    if (remedy.tried) continue;
    if (!remedy.changes.empty() && remedy.available)
      combined.push_back(remedy);
    else if ((surely ? remedy.fits_alone : remedy.likely_alone) && (!otherwise || remedy.cost < otherwise->cost))
      otherwise = FittingSet{{remedy}, {}, remedy.cost};
  }
  std::stable_sort(combined.begin(), combined.end(), cheaper);
  if (combined.size() > kCandidates) combined.resize(kCandidates);
  for (const Remedy& remedy : combined)
    for (Remedy& size : sizes_of(view, remedy)) search.candidates.push_back(std::move(size));
  std::stable_sort(search.candidates.begin(), search.candidates.end(), cheaper);
  for (size_t size = 1; size <= kMembers; ++size) search.extend({}, 0, size);
  return search.best ? search.best : otherwise;
}

}  // namespace headroom::doctor
