// The getters of HfConfig for rotary positions: {"rope_theta", "rope_scaling": {"type" or "rope_type", ...}}, or
// {"rope_parameters": {"rope_theta", "rope_type", ...}}, which may hold such an object per kind of layer.
#include <cmath>

#include "base/error.h"
#include "formats/hf_config_values.h"

namespace headroom {

using namespace hf_config_values;

namespace {

constexpr double kMaxTheta = 1e15;

// One object of scaling parameters and the name its keys have in errors.
struct Scaling {
  const HfConfig& config;
  const Json& object;
  std::string key;

  std::string name_of(std::string_view field) const { return fmt::format("{}.{}", key, field); }
  double number(std::string_view field, double least, double most) const {
    const Json* value = find(object, field);
    if (value == nullptr) refuse_absent(config.source, name_of(field));
    return checked_number(config, name_of(field), *value, least, most);
  }
  std::vector<double> numbers(std::string_view field) const {
    const Json* list = find(object, field);
    if (list == nullptr) refuse_absent(config.source, name_of(field));
    if (!list->is_array() || list->empty() || list->size() > 4096)
      refuse_value(config.source, name_of(field), *list, "not a list of numbers");
    std::vector<double> values;
    for (const Json& value : *list) values.push_back(checked_number(config, name_of(field), value, 1e-6, 1e6));
    return values;
  }
  // Positions of the original training: in the object, or next to it.
  int64_t original(std::optional<int64_t> fallback) const {
    constexpr std::string_view field = "original_max_position_embeddings";
    constexpr int64_t most = int64_t{1} << 40;
    if (const Json* value = find(object, field)) return checked_integer(config, name_of(field), *value, 1, most);
    if (!fallback) refuse_absent(config.source, name_of(field));
    return config.integer(field, 1, most, fallback);
  }
};

// LongRoPE: a factor per pair of channels, one list for short and one for long sequences; cosines and sines are
// multiplied by sqrt(1 + ln(stretch) / ln(original positions)) unless the file gives the factor.
RopeScaling read_longrope(const Scaling& from) {
  RopeScaling scaling;
  scaling.type = RopeType::longrope;
  scaling.short_factors = from.numbers("short_factor");
  scaling.long_factors = from.numbers("long_factor");
  const int64_t positions = from.config.max_positions();
  scaling.original_max_position = from.original(from.config.model_type == "phi3" ? 4096 : positions);
  const auto original = static_cast<double>(scaling.original_max_position);
  const double stretch =
      find(from.object, "factor") ? from.number("factor", 1e-6, 1e6) : static_cast<double>(positions) / original;
  if (find(from.object, "attention_factor"))
    scaling.amplitude = from.number("attention_factor", 1e-6, 1e6);
  else if (stretch > 1 && original > 1)
    scaling.amplitude = std::sqrt(1 + std::log(stretch) / std::log(original));
  return scaling;
}

}  // namespace

double HfConfig::rope_theta(std::string_view layer_type) const {
  if (const Json* parameters = rope_object("rope_parameters", layer_type))
    if (const Json* theta = find(*parameters, "rope_theta"))
      return checked_number(*this, "rope_parameters.rope_theta", *theta, 1.0, kMaxTheta);
  if (model_type == "gemma3_text" && layer_type == "sliding_attention")
    return number("rope_local_base_freq", 1.0, kMaxTheta, 10000.0);
  if (has("rotary_emb_base")) return number("rotary_emb_base", 1.0, kMaxTheta);
  return number("rope_theta", 1.0, kMaxTheta, model_type == "gemma3_text" || model_type == "mixtral" ? 1e6 : 10000.0);
}

double HfConfig::rotary_fraction() const {
  constexpr std::string_view key = "partial_rotary_factor";
  if (const Json* parameters = rope_object("rope_parameters", "full_attention"))
    if (const Json* fraction = find(*parameters, key))
      return checked_number(*this, "rope_parameters.partial_rotary_factor", *fraction, 0.0, 1.0);
  const std::string_view present = !has(key) && has("rotary_pct") ? "rotary_pct" : key;
  return number(present, 0.0, 1.0, model_type == "gpt_neox" ? 0.25 : 1.0);
}

const Json* HfConfig::rope_object(std::string_view key, std::string_view layer_type) const {
  const Json* object = find(raw, key);
  if (object == nullptr) return nullptr;
  if (!object->is_object()) refuse_value(source, key, *object, "not an object");
  for (const auto& [name, value] : object->items()) {
    if (!value.is_object()) continue;
    if (!layer_type.empty()) return find(*object, layer_type);
    throw Error(ErrorKind::format,
                fmt::format("{}: {} differs by layer ('{}'), which {} is not built with", source.string(), key, name,
                            model_type),
                "use a model whose layers share their rotary positions");
  }
  return object;
}

RopeScaling HfConfig::rope_scaling(std::string_view layer_type) const {
  RopeScaling scaling;
  const char* key = "rope_parameters";
  const Json* object = rope_object(key, layer_type);
  if (object == nullptr && layer_type != "sliding_attention") object = rope_object(key = "rope_scaling", layer_type);
  if (object == nullptr) return scaling;
  const Scaling from{*this, *object, key};
  const Json* type = find(*object, "rope_type");
  const std::string_view type_key = type != nullptr ? "rope_type" : "type";
  if (type == nullptr) type = find(*object, "type");
  if (type == nullptr) {
    if (find(*object, "factor") == nullptr) return scaling;
    refuse_absent(source, from.name_of("rope_type"));
  }
  if (!type->is_string()) refuse_value(source, from.name_of(type_key), *type, "not a string");
  const auto name = type->get<std::string>();
  if (name == "default") return scaling;
  if (name == "longrope" || name == "su") return read_longrope(from);
  if (name != "linear" && name != "llama3")
    refuse_value(source, from.name_of(type_key), *type, "not one of default, linear, llama3, longrope",
                 "this kind of position scaling is not supported yet; use a model without it");
  scaling.factor = from.number("factor", 1.0, 1e6);
  scaling.type = name == "linear" ? RopeType::linear : RopeType::llama3;
  if (name == "linear") return scaling;
  scaling.low_freq_factor = from.number("low_freq_factor", 1e-6, 1e6);
  scaling.high_freq_factor = from.number("high_freq_factor", 1e-6, 1e6);
  scaling.original_max_position = from.original({});
  return scaling;
}

}  // namespace headroom
