#include "formats/hf_config.h"

#include <utility>

#include "base/error.h"
#include "base/integer_codes.h"
#include "formats/gguf_config.h"
#include "formats/hf_config_values.h"

namespace headroom {

using namespace hf_config_values;

namespace {

constexpr int64_t kMaxConfigBytes = int64_t{4} << 20;

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
  config.raw = is_gguf(file) ? gguf_config(GgufFile::open(file)) : read_json(file, kMaxConfigBytes);
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
  if (!value->is_string()) refuse_value(source, key, *value, "not a string");
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
  if (!method->is_string()) refuse_value(source, "quantization_config.quant_method", *method, "not a string");
  return method->get<std::string>();
}

namespace {

std::string bitsandbytes_codes(const Json& config) {
  if (config.value("load_in_4bit", Json(false)) != true) return "";
  const Json kind = config.value("bnb_4bit_quant_type", Json("fp4"));
  const bool doubled = config.value("bnb_4bit_use_double_quant", Json(false)) == true;
  if (kind == "nf4") return doubled ? "nf4-dq" : "nf4";
  return kind == "fp4" && !doubled ? "fp4" : "";
}

// Whether activations are quantized at run time, to asymmetric 8-bit codes per token.
bool are_token_codes(const Json& activations) {
  const auto is = [&](const char* key, const Json& wanted) { return activations.value(key, Json()) == wanted; };
  return activations.is_object() && is("num_bits", 8) && is("type", "int") && is("symmetric", false) &&
         is("dynamic", true) && is("strategy", "token");
}

// The codes of compressed-tensors with one group of symmetric integer weights; with int4 weights activations may have
// codes per token. Empty for any other form.
std::string packed_codes(const Json& config) {
  const Json groups = config.value("config_groups", Json());
  if (!groups.is_object() || groups.size() != 1 || !groups.begin()->is_object()) return "";
  const Json group = *groups.begin(), weights = group.value("weights", Json());
  const Json format = group.value("format", Json());
  if ((format.is_null() ? config.value("format", Json()) : format) != "pack-quantized" || !weights.is_object())
    return "";
  const auto is = [&](const char* key, const Json& wanted) { return weights.value(key, Json()) == wanted; };
  if (!is("symmetric", true) || !is("type", "int")) return "";
  if (!is("num_bits", 4) && !is("num_bits", 8)) return "";
  IntegerCodes codes{is("num_bits", 4) ? 4 : 8, 0};
  const Json group_size = weights.value("group_size", Json());
  if (!is("strategy", "channel")) {
    if (!is("strategy", "group") || !group_size.is_number_integer()) return "";
    codes.group = group_size.get<int64_t>();
  }
  const std::string name = integer_codes_name(codes);
  const Json activations = group.value("input_activations", Json());
  if (!activations.is_null()) return are_token_codes(activations) && name == "int4" ? "int8-int4" : "";
  return integer_codes(name) == codes ? name : "";
}

// The codes of a part, if the configuration is made from a GGUF's metadata (gguf_config.h).
std::string gguf_codes(const HfConfig& config, const char* part) {
  if (config.quantization_method() != "gguf") return "";
  const Json codes = find(config.raw, "quantization_config")->value(part, Json());
  return codes.is_string() && integer_codes(codes.get<std::string>()) ? codes.get<std::string>() : "";
}

}  // namespace

std::string HfConfig::weight_codes() const {
  const std::string method = quantization_method();
  if (method == "bitsandbytes") return bitsandbytes_codes(*find(raw, "quantization_config"));
  if (method == "gguf") return gguf_codes(*this, "weights");
  return method == "compressed-tensors" ? packed_codes(*find(raw, "quantization_config")) : "";
}

std::string HfConfig::embedding_codes() const { return gguf_codes(*this, "embedding"); }

std::string HfConfig::head_codes() const { return gguf_codes(*this, "head"); }

}  // namespace headroom
