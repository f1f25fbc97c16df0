// Names that each system uses for a job's fields and values. Data only; spelling.cpp looks them up.
#pragma once

#include <span>
#include <string_view>

#include "doctor/config/job.h"

namespace headroom::doctor {

// The key for a field that no source sets yet.
struct MainKey {
  System system;
  std::string_view field, key;
};

// The system's name for a canonical value. Systems without a row use the canonical name.
struct ValueWord {
  System system;
  std::string_view field, value, word;
};

std::span<const MainKey> main_keys();
std::span<const ValueWord> value_words();

}  // namespace headroom::doctor
