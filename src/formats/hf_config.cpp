#include "formats/hf_config.h"

#include <cmath>
#include <utility>

#include "base/error.h"

namespace headroom {
namespace {

constexpr std::string_view kRemedy = "mend the config.json or download the model again";
constexpr int64_t kMaxConfigBytes = int64_t{4} << 20;

// A value as an error shows it, at most 80 characters.
std::string shown(const Json& value) {
  std::string text = value.dump(-1, ' ', false, Json::error_handler_t::replace);
  return text.size() <= 80 ? text : text.substr(0, 77) + "...";
}

const Json* find(const Json& object, std::string_view key) {
  const auto it = object.find(key);
  return it == object.end() || it->is_null() ? nullptr : &*it;
}

[[noreturn]] void refuse_value(const std::filesystem::path& source, std::string_view key, const Json& value,
                               std::string_view problem, std::string_view remedy = kRemedy) {
  throw Error(ErrorKind::format, fmt::format("{}: {} is {}, {}", source.string(), key, shown(value), problem),
              std::string(remedy));
}

[[noreturn]] void refuse_absent(const std::filesystem::path& source, std::string_view key) {
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

std::vector<std::string> read_architectures(const HfConfig& config) {
  std::vector<std::string> names;
  const Json* list = find(config.raw, "architectures");
  if (list == nullptr) return names;
  if (!list->is_array()) refuse_value(config.source, "architectures", *list, "not a list of names");
  for (const Json& name : *list) {
    if (!name.is_string()) refuse_value(config.source, "architectures", *list, "not a list of names");
    names.push_back(name.get<std::string>());
  }
  return names;
}

}  // namespace

HfConfig HfConfig::read(const std::filesystem::path& path) {
  std::error_code status;
  const std::filesystem::path file = std::filesystem::is_directory(path, status) ? path / "config.json" : path;
  HfConfig config;
  config.source = file;
  config.raw = read_json(file, kMaxConfigBytes);
  config.adopt();
  return config;
}

HfConfig HfConfig::parse(std::string_view text, const std::filesystem::path& source) {
  HfConfig config;
  config.source = source;
  config.raw = parse_json(text, source.string());
  config.adopt();
  return config;
}

void HfConfig::adopt() {
  if (!raw.is_object())
    throw Error(ErrorKind::format, fmt::format("{}: not a JSON object but {}", source.string(), raw.type_name()),
                "give the config.json of a model");
  model_type = text("model_type");
  architectures = read_architectures(*this);
}

bool HfConfig::has(std::string_view key) const { return find(raw, key) != nullptr; }

int64_t HfConfig::integer(std::string_view key, int64_t least, int64_t most, std::optional<int64_t> fallback) const {
  const Json* value = find(raw, key);
  if (value != nullptr) return checked_integer(*this, key, *value, least, most);
  if (!fallback) refuse_absent(source, key);
  return *fallback;
}

double HfConfig::number(std::string_view key, double least, double most, std::optional<double> fallback) const {
  const Json* value = find(raw, key);
  if (value != nullptr) return checked_number(*this, key, *value, least, most);
  if (!fallback) refuse_absent(source, key);
  return *fallback;
}

bool HfConfig::boolean(std::string_view key, std::optional<bool> fallback) const {
  const Json* value = find(raw, key);
  if (value == nullptr) {
    if (!fallback) refuse_absent(source, key);
    return *fallback;
  }
  if (!value->is_boolean()) refuse_value(source, key, *value, "not true or false");
  return value->get<bool>();
}

std::string HfConfig::text(std::string_view key, std::optional<std::string> fallback) const {
  const Json* value = find(raw, key);
  if (value == nullptr) {
    if (!fallback) refuse_absent(source, key);
    return *fallback;
  }
  if (!value->is_string()) refuse_value(source, key, *value, "not a text");
  return value->get<std::string>();
}

void HfConfig::refuse(std::string_view key, std::string_view problem, std::string_view remedy) const {
  const Json* value = find(raw, key);
  if (value == nullptr)
    throw Error(ErrorKind::format, fmt::format("{}: {} is missing, {}", source.string(), key, problem),
                std::string(remedy));
  refuse_value(source, key, *value, problem, remedy);
}

std::optional<int64_t> HfConfig::bos_id() const {
  if (!has("bos_token_id")) return std::nullopt;
  return integer("bos_token_id", 0, INT32_MAX);
}

std::vector<int64_t> HfConfig::eos_ids() const {
  const Json* value = find(raw, "eos_token_id");
  std::vector<int64_t> ids;
  if (value == nullptr) return ids;
  if (!value->is_array()) return {checked_integer(*this, "eos_token_id", *value, 0, INT32_MAX)};
  for (const Json& id : *value) ids.push_back(checked_integer(*this, "eos_token_id", id, 0, INT32_MAX));
  return ids;
}

std::string HfConfig::dtype() const {
  const std::string_view key = has("dtype") ? "dtype" : "torch_dtype";
  std::string name = text(key, "float32");
  if (name.rfind("torch.", 0) == 0) name.erase(0, 6);
  for (const char* known : {"float32", "float16", "bfloat16", "float64", "int8", "uint8"})
    if (name == known) return name;
  refuse(key, "not float32, float16 or bfloat16", "set it to the dtype of the weights");
}

bool HfConfig::quantized() const { return has("quantization_config"); }

std::string HfConfig::quantization_method() const {
  const Json* value = find(raw, "quantization_config");
  if (value == nullptr) return "";
  if (!value->is_object()) refuse_value(source, "quantization_config", *value, "not an object");
  const Json* method = find(*value, "quant_method");
  if (method == nullptr)
    return value->contains("load_in_8bit") || value->contains("load_in_4bit") ? "bitsandbytes" : "unknown";
  if (!method->is_string()) refuse_value(source, "quantization_config.quant_method", *method, "not a text");
  return method->get<std::string>();
}

// --- rotary positions: {"rope_theta", "rope_scaling": {"type" or "rope_type", ...}} or {"rope_parameters":
// {"rope_theta", "rope_type", ...}} ---

double HfConfig::rope_theta() const {
  if (const Json* parameters = rope_object("rope_parameters"))
    if (const Json* theta = find(*parameters, "rope_theta"))
      return checked_number(*this, "rope_parameters.rope_theta", *theta, 1.0, 1e15);
  return number("rope_theta", 1.0, 1e15, 10000.0);
}

const Json* HfConfig::rope_object(std::string_view key) const {
  const Json* object = find(raw, key);
  if (object == nullptr) return nullptr;
  if (!object->is_object()) refuse_value(source, key, *object, "not an object");
  for (const auto& [name, value] : object->items())
    if (value.is_object())
      throw Error(ErrorKind::format,
                  fmt::format("{}: {} differs by layer ('{}'), which is not supported yet", source.string(), key, name),
                  "use a model whose layers share their rotary positions");
  return object;
}

RopeScaling HfConfig::rope_scaling() const {
  RopeScaling scaling;
  const char* key = "rope_parameters";
  const Json* object = rope_object(key);
  if (object == nullptr) object = rope_object(key = "rope_scaling");
  if (object == nullptr) return scaling;
  const auto name_of = [&](std::string_view field) { return fmt::format("{}.{}", key, field); };
  const Json* type = find(*object, "rope_type");
  const std::string_view type_key = type != nullptr ? "rope_type" : "type";
  if (type == nullptr) type = find(*object, "type");
  if (type == nullptr) {
    if (find(*object, "factor") == nullptr) return scaling;
    refuse_absent(source, name_of("rope_type"));
  }
  if (!type->is_string()) refuse_value(source, name_of(type_key), *type, "not a text");
  const auto name = type->get<std::string>();
  const auto field = [&](std::string_view field_key, double least, double most) {
    const Json* value = find(*object, field_key);
    if (value == nullptr) refuse_absent(source, name_of(field_key));
    return checked_number(*this, name_of(field_key), *value, least, most);
  };
  if (name == "default") return scaling;
  if (name != "linear" && name != "llama3")
    refuse_value(source, name_of(type_key), *type, "not one of default, linear, llama3",
                 "this kind of position scaling is not supported yet; use a model without it");
  scaling.factor = field("factor", 1.0, 1e6);
  scaling.type = name == "linear" ? RopeType::linear : RopeType::llama3;
  if (name == "linear") return scaling;
  scaling.low_freq_factor = field("low_freq_factor", 1e-6, 1e6);
  scaling.high_freq_factor = field("high_freq_factor", 1e-6, 1e6);
  const Json* original = find(*object, "original_max_position_embeddings");
  if (original == nullptr) refuse_absent(source, name_of("original_max_position_embeddings"));
  scaling.original_max_position =
      checked_integer(*this, name_of("original_max_position_embeddings"), *original, 1, int64_t{1} << 40);
  return scaling;
}

}  // namespace headroom
