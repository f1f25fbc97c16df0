// The text of remedies as the post's own program and system spell it, without what the post has already.
#pragma once

#include "doctor/remedies/case_view.h"
#include "doctor/remedies/rules.h"

namespace headroom::doctor {

void respell(const CaseView& view, Findings& findings);

}  // namespace headroom::doctor
