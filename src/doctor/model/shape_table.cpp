// Looks shapes of published models up by the names that people write; parameters are computed from the geometry.
#include <algorithm>
#include <cctype>
#include <string_view>
#include <vector>

#include "doctor/model/published_models.h"
#include "doctor/model/shape_count.h"

namespace headroom::doctor {
namespace {

// Letters and digits of a path's last part, in lower case: "meta-llama/Llama-3.2-1B" -> "llama321b".
std::string key_of(const std::string& name) {
  const size_t slash = name.find_last_of('/');
  std::string key;
  for (const char c : slash == std::string::npos ? name : name.substr(slash + 1))
    if (std::isalnum(static_cast<unsigned char>(c)))
      key += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  if (key.rfind("meta", 0) == 0) key.erase(0, 4);
  return key;
}

// "Llama", "3.2", "1B" of "meta-llama/Llama-3.2-1B".
std::vector<std::string> parts_of(const std::string& name) {
  const size_t slash = name.find_last_of('/');
  std::vector<std::string> parts(1);
  for (const char c : slash == std::string::npos ? name : name.substr(slash + 1)) {
    if (c == '-' || c == '_' || c == ' ' || c == ':') {
      if (!parts.back().empty()) parts.emplace_back();
    } else {
      parts.back() += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    }
  }
  if (parts.back().empty()) parts.pop_back();
  return parts;
}

// Whether the part makes it a different shape: a size, or the name of one.
bool tells_the_shape(const std::string& part) {
  for (const char* word : {"mini", "small", "medium", "large", "base", "xl", "xxl", "tiny", "nano", "moe", "vl",
                           "vision", "multimodal", "audio", "omni", "next", "lite"})
    if (part == word) return true;
  const bool size = part.size() > 1 && (part.back() == 'b' || part.back() == 'm') &&
                    std::isdigit(static_cast<unsigned char>(part[part.size() - 2]));
  return size && std::isdigit(static_cast<unsigned char>(part[0]));
}

CountOptions options_of(const PublishedModel& row) {
  CountOptions options;
  const std::string_view family(row.family);
  if (family == "bert") options.token_types = 2;
  if (family == "roberta" || family == "xlm-roberta") options.token_types = 1;
  options.pooler = options.token_types > 0;
  if (family == "deepseek_v2" || family == "deepseek_v3") {
    options.key_value_rank = 512;
    options.nope_head_dim = 128;
    options.rope_head_dim = 64;
    options.query_rank = family == "deepseek_v3" ? 1536 : 0;
    options.router_bias = family == "deepseek_v3";
  }
  return options;
}

ModelShape shape_of(const PublishedModel& row) {
  FamilyFacts facts = facts_or_llama(row.family);
  const std::string_view name(row.name);
  if (name == "falcon-40b") facts.norms_per_layer = 2;
  if (name == "dinov2-giant") facts.mlp = MlpKind::gated;
  ModelShape s;
  s.name = row.name;
  s.family = row.family;
  s.layers = row.layers;
  s.hidden = row.hidden;
  s.heads = row.heads;
  s.kv_heads = row.kv_heads;
  s.head_dim = row.head_dim;
  s.intermediate = row.intermediate;
  s.vocab = row.vocab;
  s.max_positions = row.max_positions;
  s.tied = row.tied;
  s.stored_dtype = row.dtype == 'b' ? "bfloat16" : row.dtype == 'h' ? "float16" : "float32";
  s.experts = row.experts;
  s.experts_per_token = row.per_token;
  s.moe_intermediate = row.moe_intermediate;
  s.shared_intermediate = row.shared;
  s.dense_layers = row.dense;
  take_facts(s, facts);
  s.encoder_layers = facts.encoder_decoder ? row.layers : 0;
  if (row.vocab == 0) s.labels = 1000;  // image classifiers
  const CountOptions options = options_of(row);
  if (options.key_value_rank > 0) {
    s.value_head_dim = 128;
    s.kv_latent = options.key_value_rank + options.rope_head_dim;
  }
  count_parameters(s, facts, options);
  return s;
}

}  // namespace

// Variants keep the model's name as a prefix ("-Instruct-2507", "-AWQ", "-reasoning-plus"): drops parts from the end
// until the table has the rest.
std::optional<ModelShape> find_in_table(const std::string& name) {
  std::vector<std::string> parts = parts_of(name);
  bool dropped_base = false;
  while (!parts.empty()) {
    std::string whole, plain;  // plain: "Mistral-7B-Instruct-v0.3" has the shape of "Mistral-7B-v0.3"
    for (const std::string& part : parts) {
      whole += part;
      if (part != "instruct" && part != "chat" && part != "it" && part != "hf") plain += part;
    }
    for (const std::string& key : {key_of(whole), key_of(plain)})
      for (const PublishedModel& row : published_models())
        if (key_of(row.name) == key) return shape_of(row);
    // "Qwen2.5-7B-base" is the model itself, while "t5-base" is a size: "base" is dropped only once and only after a
    // size.
    const bool base =
        parts.back() == "base" && parts.size() > 2 && !dropped_base && tells_the_shape(parts[parts.size() - 2]);
    if (tells_the_shape(parts.back()) && !base) return std::nullopt;
    dropped_base = dropped_base || base;
    parts.pop_back();
  }
  return std::nullopt;
}

}  // namespace headroom::doctor
