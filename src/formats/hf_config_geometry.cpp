// The getters of HfConfig that know the spellings and the defaults of each family's class in transformers.
#include <array>

#include "base/error.h"
#include "formats/hf_config.h"

namespace headroom {
namespace {

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
  return integer("num_key_value_heads", 1, kMaxCount, absent && model_type == "mistral" ? 8 : heads());
}

int64_t HfConfig::head_dim() const {
  if (has("head_dim")) return integer("head_dim", 1, kMaxCount);
  return hidden_size() / heads();
}

int64_t HfConfig::intermediate_size() const {
  const std::string_view key = named(*this, "intermediate_size", "n_inner");
  return integer(key, 1, 8 * kMaxWidth, is_gpt2(*this) ? std::optional(4 * hidden_size()) : std::nullopt);
}

int64_t HfConfig::max_positions() const {
  struct Default {
    std::string_view family;
    int64_t positions;
  };
  constexpr std::array<Default, 4> defaults{{{"llama", 2048}, {"qwen2", 32768}, {"mistral", 131072}, {"gpt2", 1024}}};
  std::optional<int64_t> fallback;
  for (const Default& row : defaults)
    if (row.family == model_type) fallback = row.positions;
  return integer(named(*this, "max_position_embeddings", "n_positions"), 1, int64_t{1} << 40, fallback);
}

double HfConfig::norm_epsilon() const {
  const std::string_view layer_norm = spelling(*this, "layer_norm_epsilon", "layer_norm_eps");
  const std::string_view key =
      is_gpt2(*this) ? spelling(*this, layer_norm, "rms_norm_eps") : spelling(*this, "rms_norm_eps", layer_norm);
  return number(key, 0.0, 1.0, is_gpt2(*this) ? 1e-5 : 1e-6);
}

std::string HfConfig::activation() const {
  return text(named(*this, "hidden_act", "activation_function"), is_gpt2(*this) ? "gelu_new" : "silu");
}

double HfConfig::initializer_range() const { return number("initializer_range", 0.0, 1e3, 0.02); }

bool HfConfig::tied() const {
  const bool untied = model_type == "llama" || model_type == "mistral" || model_type == "qwen2";
  return boolean("tie_word_embeddings", !untied);
}

std::optional<int64_t> HfConfig::sliding_window(int64_t layer) const {
  HR_CHECK(layer >= 0, "layer {}", layer);
  constexpr int64_t most = int64_t{1} << 40;
  const auto window = [&](std::optional<int64_t> absent) -> std::optional<int64_t> {
    if (has("sliding_window")) return integer("sliding_window", 1, most);
    return raw.contains("sliding_window") ? std::nullopt : absent;
  };
  if (model_type == "mistral") return window(4096);
  if (model_type == "qwen2" && !boolean("use_sliding_window", false)) return std::nullopt;
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
    if (!has("sliding_window")) refuse("sliding_window", "which layer_types needs", "give its length");
    return window(std::nullopt);
  }
  if (model_type == "qwen2" && layer < integer("max_window_layers", 0, most, 28)) return std::nullopt;
  return window(model_type == "qwen2" ? std::optional<int64_t>(4096) : std::nullopt);
}

}  // namespace headroom
