// A model's shape for the memory model: from a local config.json of any known or similar family, from the table of
// published models, or guessed from a parameter count.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace headroom::doctor {

struct ModelShape {
  std::string name;
  std::string family;            // config.json's model_type
  double parameters = 0;         // all weights; tied heads are counted once
  double active_parameters = 0;  // per token; less than `parameters` for a mixture of experts
  int64_t layers = 0, hidden = 0, heads = 0, kv_heads = 0, head_dim = 0, intermediate = 0, vocab = 0;
  int64_t max_positions = 0;
  int64_t experts = 0, experts_per_token = 0, moe_intermediate = 0;
  int64_t sliding_window = 0;
  bool tied = false, gated_mlp = true, encoder_only = false, encoder_decoder = false;
  std::string stored_dtype;  // of the published checkpoint: bfloat16, float16, float32
  bool guessed = false;      // from a parameter count: estimates get a wider range and say so

  // What activations depend on.
  bool rms_norm = true;         // computed in float32 by Python modules; false: torch's fused LayerNorm
  int64_t norms_per_layer = 2;  // of width `hidden`
  bool query_key_norm = false;
  bool parallel_residual = false;   // attention and MLP read the same normalised input
  std::string activation = "silu";  // config.json's hidden_act
  double attention_dropout = 0, hidden_dropout = 0;
  int64_t windowed_layers = 0;      // layers whose attention is limited to sliding_window
  int64_t dense_layers = 0;         // mixture of experts: layers with a plain MLP of width `intermediate`
  int64_t shared_intermediate = 0;  // mixture of experts: width of the MLP that every token passes
  int64_t encoder_layers = 0;       // encoder-decoder: layers of the encoder; `layers` are those of the decoder
  int64_t labels = 0;               // a classifier's outputs; 0: a language-model head with `vocab` outputs
  int64_t kv_latent = 0;            // multi-head latent attention: cached elements per token and layer
  int64_t value_head_dim = 0;       // if it differs from head_dim, else 0

  // Parts of `parameters`.
  double layer_parameters = 0;      // of the largest layer
  double linear_parameters = 0;     // matrices of the layers, which quantisation and "all-linear" adapters change
  double embedding_parameters = 0;  // token table, and the head unless it is tied
};

// `name_or_path`: a directory with config.json, a config.json, or a name of the table (organisation optional; case and
// '-'/'_' are ignored). nullopt when unknown. Throws Error(format) for a malformed file.
std::optional<ModelShape> find_model_shape(const std::string& name_or_path);
// The shape that the text of a config.json describes; `source` names it in errors. Throws Error(format) when the text
// is malformed or does not describe a transformer.
ModelShape parse_model_shape(const std::string& text, const std::string& source);
// A typical dense decoder of this size. parameters > 0.
ModelShape guess_model_shape(double parameters);

}  // namespace headroom::doctor
