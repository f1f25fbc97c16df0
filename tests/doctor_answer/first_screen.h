// The first screen of a post, as one line, and what must and must not stand on it.
#pragma once

#include <gtest/gtest.h>

#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "doctor/answer/answer.h"
#include "doctor/output/screen.h"

namespace headroom::doctor {

// The screen without its line breaks.
inline std::string first_screen(const std::string& text, Request request = {}) {
  request.inputs = {"-"};
  std::istringstream stream(text + "\n");
  std::string shown = screen(answer(request, stream).report), flat;
  for (const char c : shown)
    if (!(c == '\n' || c == ' ') || flat.empty() || flat.back() != ' ') flat += c == '\n' ? ' ' : c;
  return flat;
}

inline void expect_on(const std::string& screen, std::string_view words) {
  EXPECT_NE(screen.find(words), std::string::npos) << words << "\n" << screen;
}
inline void expect_none_of(const std::string& screen, const std::vector<std::string_view>& all) {
  for (const std::string_view words : all) EXPECT_EQ(screen.find(words), std::string::npos) << words << "\n" << screen;
}

}  // namespace headroom::doctor
