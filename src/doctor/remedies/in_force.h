// What a post has on already: proposing it again says nothing.
#pragma once

#include "doctor/remedies/case_view.h"
#include "doctor/remedies/rules.h"

namespace headroom::doctor {

// Refuses the remedies whose setting the post shows as in force. Jobs that a reader has understood are left to the
// rules.
void leave_out_what_is_in_force(const CaseView& view, Findings& findings);

}  // namespace headroom::doctor
