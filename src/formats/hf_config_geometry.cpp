// The getters of HfConfig that know the spellings and the defaults of each family's class in transformers.
#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "base/error.h"
#include "formats/hf_config.h"
#include "formats/model_families.h"

namespace headroom {
namespace {

// The defaults of the family's class.
const ClassDefaults& defaults_of(const HfConfig& config) {
  static constexpr ClassDefaults kNone;
  const FamilyFacts* facts = find_family_facts(config.model_type);
  return facts != nullptr ? facts->defaults : kNone;
}

// The first of two spellings that the file uses; the first one when it uses neither.
std::string_view spelling(const HfConfig& config, std::string_view usual, std::string_view other) {
  return !config.has(usual) && config.has(other) ? other : usual;
}

bool is_gpt2(const HfConfig& config) { return config.model_type == "gpt2"; }

// The name of GPT-2 for a value, or the usual one.
std::string_view named(const HfConfig& config, std::string_view usual, std::string_view gpt2) {
  return is_gpt2(config) ? spelling(config, gpt2, usual) : spelling(config, usual, gpt2);
}

constexpr int64_t kMaxWidth = int64_t{1} << 20;
constexpr int64_t kMaxCount = int64_t{1} << 16;

}  // namespace

int64_t HfConfig::vocab_size() const { return integer("vocab_size", 1, int64_t{1} << 24); }

int64_t HfConfig::hidden_size() const { return integer(named(*this, "hidden_size", "n_embd"), 1, kMaxWidth); }

int64_t HfConfig::layers() const { return integer(named(*this, "num_hidden_layers", "n_layer"), 1, kMaxCount); }

int64_t HfConfig::heads() const { return integer(named(*this, "num_attention_heads", "n_head"), 1, kMaxCount); }

int64_t HfConfig::kv_heads() const {
  const bool absent = !raw.contains("num_key_value_heads");
  const int64_t usual = absent ? defaults_of(*this).kv_heads : 0;
  return integer("num_key_value_heads", 1, kMaxCount, usual > 0 ? usual : heads());
}

int64_t HfConfig::head_dim() const {
  if (has("head_dim")) return integer("head_dim", 1, kMaxCount);
  const int64_t usual = raw.contains("head_dim") ? 0 : defaults_of(*this).head_dim;
  return usual > 0 ? usual : hidden_size() / heads();
}

int64_t HfConfig::intermediate_size() const {
  const std::string_view key = named(*this, "intermediate_size", "n_inner");
  return integer(key, 1, 8 * kMaxWidth, is_gpt2(*this) ? std::optional(4 * hidden_size()) : std::nullopt);
}

int64_t HfConfig::max_positions() const {
  const int64_t usual = defaults_of(*this).positions;
  const std::optional<int64_t> fallback = usual > 0 ? std::optional(usual) : std::nullopt;
  return integer(named(*this, "max_position_embeddings", "n_positions"), 1, int64_t{1} << 40, fallback);
}

double HfConfig::norm_epsilon() const {
  const std::string_view layer_norm = spelling(*this, "layer_norm_epsilon", "layer_norm_eps");
  const std::string_view other = spelling(*this, layer_norm, "norm_epsilon");
  const std::string_view key =
      is_gpt2(*this) ? spelling(*this, layer_norm, "rms_norm_eps") : spelling(*this, "rms_norm_eps", other);
  return number(key, 0.0, 1.0, defaults_of(*this).norm_epsilon);
}

std::string HfConfig::activation() const {
  const FamilyFacts* facts = find_family_facts(model_type);
  const std::string usual(facts != nullptr ? facts->activation : "silu");
  if (has("hidden_activation")) return text("hidden_activation");
  return text(named(*this, "hidden_act", "activation_function"), usual);
}

double HfConfig::initializer_range() const { return number("initializer_range", 0.0, 1e3, 0.02); }

bool HfConfig::tied() const {
  const FamilyFacts* facts = find_family_facts(model_type);
  return boolean("tie_word_embeddings", facts == nullptr || facts->tied);
}

std::optional<int64_t> HfConfig::pad_id() const {
  if (has("pad_token_id")) return integer("pad_token_id", INT32_MIN, INT32_MAX);
  return raw.contains("pad_token_id") ? std::nullopt : defaults_of(*this).pad;
}

int64_t HfConfig::full_attention_period() const {
  if (model_type == "gemma2") return 2;
  if (model_type == "gemma3_text") return integer("sliding_window_pattern", 1, kMaxCount, 6);
  return 0;
}

std::optional<int64_t> HfConfig::sliding_window(int64_t layer) const {
  HR_CHECK(layer >= 0, "layer {}", layer);
  constexpr int64_t most = int64_t{1} << 40;
  const auto window = [&]() -> std::optional<int64_t> {
    if (has("sliding_window")) return integer("sliding_window", 1, most);
    const int64_t usual = raw.contains("sliding_window") ? 0 : defaults_of(*this).window;
    return usual > 0 ? std::optional(usual) : std::nullopt;
  };
  const FamilyFacts* facts = find_family_facts(model_type);
  const bool switched = facts != nullptr && facts->window_switch;
  if (model_type == "mistral") return window();
  if (switched && !boolean("use_sliding_window", false)) return std::nullopt;
  if (model_type == "qwen3_moe") return window();
  if (has("layer_types")) {
    const Json& types = raw["layer_types"];
    if (!types.is_array()) refuse("layer_types", "not a list", "correct the config.json");
    if (layer >= static_cast<int64_t>(types.size()))
      refuse("layer_types", fmt::format("too short for layer {}", layer), "give one entry per layer");
    const Json& type = types[static_cast<size_t>(layer)];
    if (type == "full_attention") return std::nullopt;
    if (type != "sliding_attention")
      refuse("layer_types", fmt::format("not full_attention or sliding_attention at layer {}", layer),
             "this kind of layer is not supported yet");
    if (!window()) refuse("sliding_window", "which layer_types needs", "give its length");
    return window();
  }
  if (switched && layer < integer("max_window_layers", 0, most, 28)) return std::nullopt;
  if (const int64_t period = full_attention_period(); period > 0 && (layer + 1) % period == 0) return std::nullopt;
  return window();
}

}  // namespace headroom
