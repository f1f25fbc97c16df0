// Requests that no job makes: their size was never computed rightly.
#pragma once

#include "doctor/remedies/case_view.h"

namespace headroom::doctor {

// A request of a pebibyte and more.
bool asks_for_a_wrong_size(const CaseView& view);

}  // namespace headroom::doctor
