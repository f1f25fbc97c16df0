// Why memory ran out: ranked causes with the figures that support them.
#pragma once

#include <string_view>
#include <vector>

#include "doctor/remedies/situations/situation.h"

namespace headroom::doctor {

// By weight (0 to 1), the highest first; each name once. Empty when there is neither a message nor an estimate.
std::vector<Cause> rank_causes(const CaseView& view, const std::vector<Seen>& seen);

// The causes by group.
void device_causes(const CaseView& view, std::vector<Cause>& causes);  // figures of a device message
// The log says that it failed while it evaluated or saved: the steps of the training fit.
inline constexpr std::string_view kBesideTheSteps = "it failed beside the steps, which the estimate is of";
bool failed_beside_the_steps(const CaseView& s);
void job_causes(const CaseView& view, std::vector<Cause>& causes);     // the estimate's terms
void phase_causes(const CaseView& view, std::vector<Cause>& causes);   // phase, host, servers
void growth_causes(const CaseView& view, std::vector<Cause>& causes);  // memory over time

// Techniques to try first against a cause, the best first; empty when none is better than others.
std::vector<std::string_view> answers_to(std::string_view cause);

}  // namespace headroom::doctor
