// Properties of a model family besides the numbers of its config.json, and the defaults of its class in transformers.
// The engine's families (models/) and doctor's parameter counts read this one table.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace headroom {

enum class NormKind { rms, layer };
enum class MlpKind { gated, plain };
enum class PositionKind { rotary, learned, relative };
enum class QueryKeyNorm { none, per_head, full_width };

// Values that config.json may leave out. Complete for the families that the engine builds; 0 for the others.
struct ClassDefaults {
  int64_t positions = 0;  // 0: the file must say
  int64_t kv_heads = 0;   // 0: as many as heads
  int64_t head_dim = 0;   // 0: hidden_size / heads
  double norm_epsilon = 1e-6;
  int64_t window = 0;          // 0: none
  std::optional<int64_t> pad;  // pad_token_id
};

struct FamilyFacts {
  std::string_view model_type;  // config.json's

  NormKind norm = NormKind::rms;
  bool norm_bias = false;
  int norms_per_layer = 2;  // of width hidden_size
  QueryKeyNorm query_key_norm = QueryKeyNorm::none;
  bool embedding_norm = false, final_norm = true;
  MlpKind mlp = MlpKind::gated;
  bool qkv_bias = false, output_bias = false, mlp_bias = false, head_bias = false;
  PositionKind positions = PositionKind::rotary;
  bool parallel_residual = false;  // attention and MLP both read the layer's input
  bool encoder_only = false, encoder_decoder = false;

  // Where config.json is silent.
  bool tied = false;
  std::string_view activation = "silu";
  double dropout = 0;          // of embeddings, attention and residual stream alike
  bool window_switch = false;  // sliding_window counts only with use_sliding_window
  ClassDefaults defaults = {};
};

// Every family known, each model_type once.
std::span<const FamilyFacts> known_families();
// The facts of a model_type, nullptr where it is not known.
const FamilyFacts* find_family_facts(std::string_view model_type);

}  // namespace headroom
