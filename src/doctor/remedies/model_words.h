// A model's size in its name or in prose ("13B", "8x7b", "70b-instruct-awq"), and its number of bits.
#pragma once

#include <optional>
#include <string>

#include "doctor/model/estimate.h"

namespace headroom::doctor {

struct ModelWords {
  double parameters = 0;  // the smallest size named
  std::string written;    // "13b"
  int bits = 16;          // 8 or 4 when the text names a quantised form
};
// `text` in lower case. Absent when it has no size.
std::optional<ModelWords> model_in_words(const std::string& text);

// The device that the text names ("rtx 4090", "3090"); absent when it names none, or several and not `of_several`.
std::optional<Gpu> gpu_in_words(const std::string& text, bool of_several = false);

// Bytes of the one device whose memory the text gives beside a word for a device ("24g显存", "a 12 gb gpu", "t4
// (15gb)"): the least of those named.
std::optional<double> device_in_words(const std::string& text);
// The text tells an amount of memory as used, needed or grown to ("uses 30 gb", "from 21g to 38g").
bool tells_a_use(const std::string& text);
// How many devices the text counts ("8卡", "4 x a100"), up to 8; 1 where it counts none.
int64_t devices_in_words(const std::string& text);
// The text speaks of more than one device ("8卡", "two gpus", "4 x a100").
bool several_devices_in_words(const std::string& text);

}  // namespace headroom::doctor
