// The getters of HfConfig that know the spellings and the defaults of each family's class in transformers.
#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "base/error.h"
#include "formats/hf_config.h"

namespace headroom {
namespace {

// What a family's class in transformers takes where config.json is silent.
struct ClassDefaults {
  std::string_view family;
  int64_t positions = 0;  // 0: the file must say
  int64_t kv_heads = 0;   // 0: as many as heads
  int64_t head_dim = 0;   // 0: hidden_size / heads
  double norm_epsilon = 1e-6;
  std::string_view activation = "silu";
  bool tied = true;
  int64_t window = 0;          // 0: none
  std::optional<int64_t> pad;  // pad_token_id
};

constexpr ClassDefaults kDefaults[] = {
    {"llama", 2048, 0, 0, 1e-6, "silu", false, 0, {}},
    {"mistral", 131072, 8, 0, 1e-6, "silu", false, 4096, {}},
    {"qwen2", 32768, 0, 0, 1e-6, "silu", false, 4096, {}},
    {"qwen3", 32768, 32, 128, 1e-6, "silu", false, 4096, {}},
    {"mixtral", 131072, 8, 0, 1e-5, "silu", false, 0, {}},
    {"qwen3_moe", 32768, 4, 0, 1e-6, "silu", false, 4096, {}},
    {"olmo2", 2048, 0, 0, 1e-5, "silu", false, 0, 1},
    {"phi3", 4096, 0, 0, 1e-5, "silu", false, 0, 32000},
    {"gemma2", 8192, 4, 256, 1e-6, "gelu_pytorch_tanh", true, 4096, 0},
    {"gemma3_text", 131072, 4, 256, 1e-6, "gelu_pytorch_tanh", true, 4096, 0},
    {"gpt_neox", 2048, 0, 0, 1e-5, "gelu", false, 0, {}},
    {"starcoder2", 4096, 2, 0, 1e-5, "gelu_pytorch_tanh", true, 0, {}},
    {"bert", 512, 0, 0, 1e-12, "gelu", true, 0, 0},
    {"roberta", 512, 0, 0, 1e-12, "gelu", true, 0, 1},
    {"gpt2", 1024, 0, 0, 1e-5, "gelu_new", true, 0, {}},
};

ClassDefaults defaults_of(const HfConfig& config) {
  for (const ClassDefaults& row : kDefaults)
    if (row.family == config.model_type) return row;
  return {};
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
  const std::string usual(defaults_of(*this).activation);
  if (has("hidden_activation")) return text("hidden_activation");
  return text(named(*this, "hidden_act", "activation_function"), usual);
}

double HfConfig::initializer_range() const { return number("initializer_range", 0.0, 1e3, 0.02); }

bool HfConfig::tied() const { return boolean("tie_word_embeddings", defaults_of(*this).tied); }

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
  const bool is_qwen = model_type == "qwen2" || model_type == "qwen3";
  if (model_type == "mistral") return window();
  if (model_type == "qwen3_moe") return boolean("use_sliding_window", false) ? window() : std::nullopt;
  if (is_qwen && !boolean("use_sliding_window", false)) return std::nullopt;
  if (has("layer_types")) {
    const Json& types = raw["layer_types"];
    if (!types.is_array()) refuse("layer_types", "not a list", "mend the config.json");
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
  if (is_qwen && layer < integer("max_window_layers", 0, most, 28)) return std::nullopt;
  if (const int64_t period = full_attention_period(); period > 0 && (layer + 1) % period == 0) return std::nullopt;
  return window();
}

}  // namespace headroom
