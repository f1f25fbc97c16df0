// The editor of each language; patch.h states what they guarantee.
#pragma once

#include <string>

#include "base/error.h"
#include "doctor/config/patch.h"

namespace headroom::doctor {

std::string patch_yaml(const std::string& name, const std::string& text, const Edit& edit);
std::string patch_json(const std::string& name, const std::string& text, const Edit& edit);
std::string patch_python(const std::string& name, const std::string& text, const Edit& edit);
std::string patch_command(const std::string& name, const std::string& text, const Edit& edit);

// The value at this line cannot be edited on its own.
[[noreturn]] inline void refuse(const std::string& name, int64_t line, const std::string& key, const std::string& why) {
  throw Error(ErrorKind::usage, fmt::format("{}:{}: cannot edit '{}': {}", name, line, key, why),
              "change this line by hand");
}

// Replaces bytes [begin, end).
inline std::string splice(const std::string& text, int64_t begin, int64_t end, const std::string& value) {
  return text.substr(0, static_cast<size_t>(begin)) + value + text.substr(static_cast<size_t>(end));
}

}  // namespace headroom::doctor
