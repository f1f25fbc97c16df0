// Checked values of config.json, shared by the getters of HfConfig. Each refusal is an Error(format) that names the
// file, the key and the value.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string_view>

#include "formats/hf_config.h"

namespace headroom::hf_config_values {

inline constexpr std::string_view kRemedy = "correct the config.json or download the model again";

// The value of a key that is present and not null, else nullptr.
const Json* find(const Json& object, std::string_view key);

[[noreturn]] void refuse_value(const std::filesystem::path& source, std::string_view key, const Json& value,
                               std::string_view problem, std::string_view remedy = kRemedy);
[[noreturn]] void refuse_absent(const std::filesystem::path& source, std::string_view key);

// An integer in [least, most]; 2.0 counts as 2.
int64_t checked_integer(const HfConfig& config, std::string_view key, const Json& value, int64_t least, int64_t most);
// A finite number in [least, most].
double checked_number(const HfConfig& config, std::string_view key, const Json& value, double least, double most);

}  // namespace headroom::hf_config_values
