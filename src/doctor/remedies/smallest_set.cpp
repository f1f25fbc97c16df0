#include "doctor/remedies/smallest_set.h"

#include <algorithm>

#include "doctor/remedies/changes.h"
#include "doctor/remedies/conflicts.h"

namespace headroom::doctor {
namespace {

constexpr size_t kCandidates = 16, kMembers = 4;

struct Search {
  const Situation& situation;
  const std::vector<Remedy>& remedies;
  std::vector<size_t> candidates{};  // by cost
  std::optional<FittingSet> best{};

  bool goes_with(size_t index, const FittingSet& set) const {
    for (const size_t member : set.members)
      if (!conflict_of(remedies[index], remedies[member], situation.job().system).empty()) return false;
    return true;
  }

  // Extends `set` by candidates from `next` on until it has `size` members.
  void extend(const FittingSet& set, size_t next, size_t size) {
    for (size_t i = next; i < candidates.size(); ++i) {
      const Remedy& remedy = remedies[candidates[i]];
      if (best && set.cost + remedy.cost >= best->cost) return;  // the others cost no less
      if (!goes_with(candidates[i], set)) continue;
      FittingSet larger = set;
      larger.members.push_back(candidates[i]);
      larger.changes = together(larger.changes, remedy.changes);
      larger.cost += remedy.cost;
      if (larger.members.size() < size)
        extend(larger, i + 1, size);
      else if (situation.fits_after(larger.changes))
        best = std::move(larger);
    }
  }
};

}  // namespace

std::optional<FittingSet> smallest_fitting_set(const Situation& situation, const std::vector<Remedy>& remedies) {
  Search search{situation, remedies};
  for (size_t i = 0; i < remedies.size(); ++i) {
    const Remedy& remedy = remedies[i];
    if (remedy.fits_alone && remedy.changes.empty()) {
      if (!search.best || remedy.cost < search.best->cost) search.best = FittingSet{{i}, {}, remedy.cost};
    } else if (!remedy.changes.empty() && remedy.available) {
      search.candidates.push_back(i);
    }
  }
  std::stable_sort(search.candidates.begin(), search.candidates.end(),
                   [&](size_t a, size_t b) { return remedies[a].cost < remedies[b].cost; });
  if (search.candidates.size() > kCandidates) search.candidates.resize(kCandidates);
  for (size_t size = 1; size <= kMembers; ++size) search.extend({}, 0, size);
  return search.best;
}

}  // namespace headroom::doctor
