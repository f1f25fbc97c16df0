// How large a model is by its name or people's words ("13B", "8x7b", "70b-instruct-awq"), and in how many bits it
// comes.
#pragma once

#include <optional>
#include <string>

#include "doctor/model/estimate.h"

namespace headroom::doctor {

struct ModelWords {
  double parameters = 0;  // the least of those named
  std::string written;    // "13b"
  int bits = 16;          // 8 or 4 where the text names a quantised form
};
// `text` in lower case. Absent where no size is named.
std::optional<ModelWords> model_in_words(const std::string& text);

// The one device of whose name the text speaks ("rtx 4090", "3090"); absent where it does not, or speaks of several.
std::optional<Gpu> gpu_in_words(const std::string& text);

}  // namespace headroom::doctor
