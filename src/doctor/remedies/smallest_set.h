// The cheapest remedies that make a job fit, found by estimating every small set as a whole.
#pragma once

#include "doctor/remedies/case_view.h"

namespace headroom::doctor {

struct FittingSet {
  std::vector<Remedy> members;  // cheapest first
  Changes changes;              // of all members together
  double cost = 0;
};

// The set of at most four remedies of least total cost that fits the limit; of equals the smaller. Only remedies with
// changes to the job are combined, the 16 cheapest of them, a smaller batch and a shorter sequence in every halving;
// one that fits alone without changes (another device) counts where no set does. No proper subset of the set fits.
// nullopt when none fits or nothing can be estimated. `surely`: proven by the upper end of the estimate, else by its
// likely figure.
std::optional<FittingSet> smallest_fitting_set(const CaseView& view, const std::vector<Remedy>& remedies, bool surely);

}  // namespace headroom::doctor
