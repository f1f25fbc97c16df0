// The keys and words in which each system writes a job's fields. Data alone; spelling.cpp looks them up.
#pragma once

#include <span>
#include <string_view>

#include "doctor/config/job.h"

namespace headroom::doctor {

// The key that a field has when a job states it for the first time.
struct MainKey {
  System system;
  std::string_view field, key;
};

// The system's own word for a canonical value. Systems without a row write the canonical word itself.
struct ValueWord {
  System system;
  std::string_view field, value, word;
};

std::span<const MainKey> main_keys();
std::span<const ValueWord> value_words();

}  // namespace headroom::doctor
