// Why it ran out: ranked causes, each with the figures that speak for it.
#pragma once

#include <string_view>
#include <vector>

#include "doctor/remedies/situations/situation.h"

namespace headroom::doctor {

// Highest weight first (0 to 1), one of each name. Empty when neither a message nor an estimate says anything.
std::vector<Cause> rank_causes(const CaseView& view, const std::vector<Seen>& seen);

// The groups behind it.
void device_causes(const CaseView& view, std::vector<Cause>& causes);  // figures of a device message
// The log says that it failed while it evaluated or saved: the steps of the training fit.
inline constexpr std::string_view kBesideTheSteps = "it failed beside the steps, which the estimate is of";
bool failed_beside_the_steps(const CaseView& s);
void job_causes(const CaseView& view, std::vector<Cause>& causes);     // the estimate's terms
void phase_causes(const CaseView& view, std::vector<Cause>& causes);   // phase, host, servers
void growth_causes(const CaseView& view, std::vector<Cause>& causes);  // memory over time

// Techniques that answer a cause first, best first; empty when none does more than others.
std::vector<std::string_view> answers_to(std::string_view cause);

}  // namespace headroom::doctor
