// Finds the cheapest remedies that make a job fit, by estimating every small set as a whole.
#pragma once

#include "doctor/remedies/case_view.h"

namespace headroom::doctor {

struct FittingSet {
  std::vector<Remedy> members;  // cheapest first
  Changes changes;              // of all members together
  double cost = 0;
};

// The cheapest set of at most four remedies that fits the limit; for equal costs the smaller one. Combines only
// remedies with changes to the job, the 16 cheapest of them, with a smaller batch and a shorter sequence in every
// halving. A remedy that fits alone without changes (another device) is used only if no set fits. No proper subset of
// the result fits. nullopt when none fits or there is no estimate. `surely`: proven by the high end of the estimate;
// otherwise by its likely figure.
std::optional<FittingSet> smallest_fitting_set(const CaseView& view, const std::vector<Remedy>& remedies, bool surely);

}  // namespace headroom::doctor
