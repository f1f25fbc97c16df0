// The fields of Job by name. Readers' tables, the Changes of remedies and Job's origins use these names ("micro_batch",
// "extras.liger").
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "doctor/config/job.h"

namespace headroom::doctor {

// The field with that name and type, else nullptr.
std::optional<int64_t>* whole_field(Job& job, std::string_view name);
std::optional<double>* real_field(Job& job, std::string_view name);
std::optional<bool>* truth_field(Job& job, std::string_view name);
std::optional<std::string>* text_field(Job& job, std::string_view name);

// Sets an extra by its name after "extras.". Most extras are only reported and have no effect.
void set_extra_field(Job& job, std::string_view name, const std::string& text);

}  // namespace headroom::doctor
