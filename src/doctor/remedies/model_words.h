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

// Bytes of the one device whose memory the text gives beside a word for a device ("24g显存", "a 12 gb gpu", "t4
// (15gb)"): the least of those named.
std::optional<double> device_in_words(const std::string& text);
// The text speaks of more than one device ("8卡", "two gpus", "4 x a100").
bool several_devices_in_words(const std::string& text);

}  // namespace headroom::doctor
