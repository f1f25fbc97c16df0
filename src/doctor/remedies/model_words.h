// How large a model is by its name or people's words ("13B", "8x7b", "70b-instruct-awq"), and in how many bits it
// comes.
#pragma once

#include <optional>
#include <string>

namespace headroom::doctor {

struct ModelWords {
  double parameters = 0;  // the least of those named
  std::string written;    // "13b"
  int bits = 16;          // 8 or 4 where the text names a quantised form
};
// `text` in lower case. Absent where no size is named.
std::optional<ModelWords> model_in_words(const std::string& text);

}  // namespace headroom::doctor
