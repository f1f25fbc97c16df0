// The fields of Job by name: readers' tables, a remedy's Changes and Job's origins name them so ("micro_batch",
// "extras.liger").
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "doctor/config/job.h"

namespace headroom::doctor {

// The field of that name and type; nullptr where there is none.
std::optional<int64_t>* whole_field(Job& job, std::string_view name);
std::optional<double>* real_field(Job& job, std::string_view name);
std::optional<bool>* truth_field(Job& job, std::string_view name);
std::optional<std::string>* text_field(Job& job, std::string_view name);

// Sets what a key of no field of its own says, by its name behind "extras.". Most only stand in the report, and change
// nothing.
void set_extra_field(Job& job, std::string_view name, const std::string& text);

}  // namespace headroom::doctor
