// Where a situation is possible at all, and what several of them ask of a case.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "doctor/remedies/case_view.h"

namespace headroom::doctor {

bool on_device(const CaseView& view);  // the memory in question is a device's, and PyTorch's words fit
bool on_host(const CaseView& view);    // it is the host's
bool training_on_device(const CaseView& view);
bool serving_on_device(const CaseView& view);
bool predicting_on_device(const CaseView& view);  // neither training nor a server, as far as is known
// Nothing says what the program is: no configuration of a system that doctor reads, no frames of one.
bool unknown_program(const CaseView& view);
bool several_gpus(const CaseView& view);

// Steps that a progress bar of the log had counted at its end ("| 120/4000 [" gives 120).
std::optional<int64_t> steps_done(const CaseView& view);

// The number right behind `words`, from `begin` on; absent where none stands there.
std::optional<double> number_behind(const std::string& text, std::string_view words, size_t begin);

}  // namespace headroom::doctor
