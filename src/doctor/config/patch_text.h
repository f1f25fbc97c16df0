// The edits of one language each: patch.h says what they promise.
#pragma once

#include <string>

#include "doctor/config/patch.h"

namespace headroom::doctor {

std::string patch_yaml(const std::string& name, const std::string& text, const Edit& edit);
std::string patch_json(const std::string& name, const std::string& text, const Edit& edit);
std::string patch_python(const std::string& name, const std::string& text, const Edit& edit);
std::string patch_command(const std::string& name, const std::string& text, const Edit& edit);

// Replaces bytes [begin, end).
inline std::string splice(const std::string& text, int64_t begin, int64_t end, const std::string& value) {
  return text.substr(0, static_cast<size_t>(begin)) + value + text.substr(static_cast<size_t>(end));
}

}  // namespace headroom::doctor
