#include "formats/hf_config_values.h"

#include <cmath>

#include "base/error.h"

namespace headroom::hf_config_values {

namespace {

// A value for an error message, at most 80 characters.
std::string shown(const Json& value) {
  std::string text = value.dump(-1, ' ', false, Json::error_handler_t::replace);
  return text.size() <= 80 ? text : text.substr(0, 77) + "...";
}

}  // namespace

const Json* find(const Json& object, std::string_view key) {
  const auto it = object.find(key);
  return it == object.end() || it->is_null() ? nullptr : &*it;
}

void refuse_value(const std::filesystem::path& source, std::string_view key, const Json& value,
                  std::string_view problem, std::string_view remedy) {
  throw Error(ErrorKind::format, fmt::format("{}: {} is {}, {}", source.string(), key, shown(value), problem),
              std::string(remedy));
}

void refuse_absent(const std::filesystem::path& source, std::string_view key) {
  throw Error(ErrorKind::format, fmt::format("{}: {} is missing", source.string(), key), std::string(kRemedy));
}

int64_t checked_integer(const HfConfig& config, std::string_view key, const Json& value, int64_t least, int64_t most) {
  const std::string expected = fmt::format("not an integer from {} to {}", least, most);
  int64_t result = 0;
  if (value.is_number_unsigned()) {
    if (value.get<uint64_t>() > static_cast<uint64_t>(INT64_MAX)) refuse_value(config.source, key, value, expected);
    result = value.get<int64_t>();
  } else if (value.is_number_integer()) {
    result = value.get<int64_t>();
  } else if (value.is_number_float() && std::trunc(value.get<double>()) == value.get<double>() &&
             std::abs(value.get<double>()) < 0x1p53) {
    result = static_cast<int64_t>(value.get<double>());
  } else {
    refuse_value(config.source, key, value, expected);
  }
  if (result < least || result > most) refuse_value(config.source, key, value, expected);
  return result;
}

double checked_number(const HfConfig& config, std::string_view key, const Json& value, double least, double most) {
  const double result = value.is_number() ? value.get<double>() : NAN;
  if (!(std::isfinite(result) && result >= least && result <= most))
    refuse_value(config.source, key, value, fmt::format("not a number from {} to {}", least, most));
  return result;
}

}  // namespace headroom::hf_config_values
