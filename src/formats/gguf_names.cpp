#include "formats/gguf_names.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace headroom {
namespace {

constexpr GgufArchitecture kArchitectures[] = {{"llama", "llama", "LlamaForCausalLM", true},
                                               {"llama", "mistral", "MistralForCausalLM", true},
                                               {"qwen2", "qwen2", "Qwen2ForCausalLM", false},
                                               {"qwen3", "qwen3", "Qwen3ForCausalLM", false}};

using Names = std::pair<std::string_view, std::string_view>;  // in a GGUF, in transformers

constexpr Names kWhole[] = {{"token_embd", "model.embed_tokens"}, {"output_norm", "model.norm"}, {"output", "lm_head"}};
constexpr Names kOfLayer[] = {{"attn_norm", "input_layernorm"},    {"attn_q", "self_attn.q_proj"},
                              {"attn_k", "self_attn.k_proj"},      {"attn_v", "self_attn.v_proj"},
                              {"attn_output", "self_attn.o_proj"}, {"attn_q_norm", "self_attn.q_norm"},
                              {"attn_k_norm", "self_attn.k_norm"}, {"ffn_norm", "post_attention_layernorm"},
                              {"ffn_gate", "mlp.gate_proj"},       {"ffn_up", "mlp.up_proj"},
                              {"ffn_down", "mlp.down_proj"}};
constexpr std::string_view kBlocks = "blk.", kLayers = "model.layers.";

// The other name of a pair; `to_gguf` gives the direction.
template <size_t kCount>
std::string_view other(const Names (&names)[kCount], std::string_view name, bool to_gguf) {
  for (const auto& [gguf, weight] : names)
    if ((to_gguf ? weight : gguf) == name) return to_gguf ? gguf : weight;
  return {};
}

std::string translated(std::string_view name, bool to_gguf) {
  const size_t dot = name.rfind('.');
  if (dot == name.npos) return {};
  const std::string_view end = name.substr(dot), begin = to_gguf ? kLayers : kBlocks;
  if (end != ".weight" && end != ".bias") return {};
  name = name.substr(0, dot);
  if (!name.starts_with(begin)) {
    const std::string_view found = other(kWhole, name, to_gguf);
    return found.empty() ? std::string() : fmt::format("{}{}", found, end);
  }
  name.remove_prefix(begin.size());
  const size_t digits = std::min(name.find('.'), name.size());
  const std::string_view layer = name.substr(0, digits);
  const bool number = !layer.empty() && layer.size() < 7 && (layer == "0" || layer[0] != '0') &&
                      std::all_of(layer.begin(), layer.end(), [](char c) { return c >= '0' && c <= '9'; });
  if (!number || digits == name.size()) return {};
  const std::string_view found = other(kOfLayer, name.substr(digits + 1), to_gguf);
  return found.empty() ? std::string() : fmt::format("{}{}.{}{}", to_gguf ? kBlocks : kLayers, layer, found, end);
}

template <typename Matches>
const GgufArchitecture* find_if(const Matches& matches) {
  const auto* const at = std::find_if(std::begin(kArchitectures), std::end(kArchitectures), matches);
  return at == std::end(kArchitectures) ? nullptr : at;
}

}  // namespace

std::span<const GgufArchitecture> gguf_architectures() { return kArchitectures; }

const GgufArchitecture* find_gguf_architecture(std::string_view name) {
  return find_if([&](const GgufArchitecture& a) { return a.name == name; });
}

const GgufArchitecture* gguf_architecture_of(std::string_view model_type) {
  return find_if([&](const GgufArchitecture& a) { return a.model_type == model_type; });
}

std::string weight_of_gguf(std::string_view name) { return translated(name, false); }
std::string gguf_of_weight(std::string_view name) { return translated(name, true); }

RotaryRows rotary_rows(std::string_view weight) {
  if (weight.find(".self_attn.q_proj.") != weight.npos) return RotaryRows::queries;
  return weight.find(".self_attn.k_proj.") != weight.npos ? RotaryRows::keys : RotaryRows::none;
}

}  // namespace headroom
