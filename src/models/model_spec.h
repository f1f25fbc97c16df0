// A model as data: geometry, variants, and the checkpoint's weight names. A family is a function from config.json to a
// ModelSpec (one file each); decoder.cpp and serving.cpp build every graph from it.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "formats/hf_config.h"
#include "formats/model_families.h"

namespace headroom {

// What the output predicts: the next token, a token at its own position, the class of a sequence; or there is no head.
enum class Objective { language, masked, classification, none };

// A mixture of experts: some layers have, instead of the MLP, a router and `count` gated units, of which each token
// uses the `chosen` ones with the largest probabilities. No token is dropped.
struct ExpertSpec {
  int64_t count = 0;
  int64_t chosen = 0;
  int64_t intermediate = 0;
  bool normalised = true;    // the weights of a token's experts are divided by their sum
  std::vector<bool> layers;  // which layers have experts; empty: none
  double balance = 0;        // coefficient of the load-balancing loss; 0: there is none
};

// Dropout probabilities in training (0: none). Kept elements are scaled so that the expectation stays (Srivastava et
// al. 2014).
struct DropoutRates {
  double embedding = 0;     // of the embeddings
  double attention = 0;     // of attention's probabilities
  double residual = 0;      // of what attention and MLP add to the residual stream
  double head = 0;          // of what a classifier reads
  bool head_input = false;  // also of what the layer before it reads
};

// Names of a model's weights by role. "{}" stands for the layer, "*" for every expert of the layer: the graph has one
// weight for all experts, a checkpoint one tensor for each. A role without a name does not exist in the family. Roles:
// embed positions final_norm head, and per layer: attn_norm q k v qkv q_norm k_norm o attn_post_norm ffn_norm gate up
// gate_up down ffn_post_norm attn_sum_norm ffn_sum_norm; in layers with experts router expert_gate expert_up
// expert_down instead of gate up down. All except tables and experts may also have "_bias". attn_norm and ffn_norm come
// before attention and MLP, the post norms between them and the sum with the residual stream, the sum norms after it.
// Encoders: types embed_norm, and for their heads: transform transform_norm pooler head_bias.
using WeightNames = std::map<std::string, std::string, std::less<>>;

// The most rows that a table of positions may have. A model that names more positions is treated as having this many.
inline constexpr int64_t kMostPositions = int64_t{1} << 31;

struct ModelSpec {
  std::string family;        // "llama"
  std::string architecture;  // "LlamaForCausalLM"
  int64_t layers = 0;
  int64_t hidden = 0;
  int64_t heads = 0;
  int64_t kv_heads = 0;
  int64_t head_dim = 0;
  int64_t intermediate = 0;
  int64_t vocab = 0;
  int64_t max_positions = 0;
  NormKind norm = NormKind::rms;
  double norm_epsilon = 1e-6;
  bool unit_norm = false;  // norm weights are stored minus one
  MlpKind mlp = MlpKind::gated;
  ExpertSpec experts;
  std::string activation = "silu";  // "silu", "gelu" (exact) or "gelu_tanh"
  PositionKind positions = PositionKind::rotary;
  int64_t rotary_dim = 0;  // channels of a head that rotate
  double rope_theta = 10000;
  RopeScaling rope_scaling;
  double local_rope_theta = 0;   // of windowed layers if it differs; without scaling
  std::vector<int64_t> windows;  // per layer, 0 = full attention
  double attention_scale = 0;    // of the scores; 0: 1 / sqrt(head_dim)
  double score_cap = 0;          // scores become c tanh(score / c); 0: no cap
  double logit_cap = 0;
  double embedding_scale = 1;
  bool qkv_by_head = false;        // fused qkv: q, k and v of a head follow one another
  bool qk_norm_whole = false;      // query and key norms run over all heads together
  bool parallel_residual = false;  // attention and MLP both read the block's input
  Objective objective = Objective::language;
  bool causal = true;        // otherwise every token attends to every other except padding
  int64_t pad_id = 0;        // of encoders: trailing tokens with this id are padding
  int64_t padding_row = -1;  // row of the embedding that gets no gradient from look-ups; -1: none
  // Row of the position table for position 0, followed by the other max_positions - 1 rows. Above 0, positions count
  // only tokens that are not padding, and padding uses the row before it.
  int64_t first_position = 0;
  int64_t type_vocab = 0;  // token types; tokens have type 0, or 1 in the second text of a pair
  int64_t classes = 0;     // of a classification head
  bool tied = false;
  std::string tied_head;          // if tied: the head's name in a checkpoint, which no weight of the model has
  std::string layout = "out_in";  // of every matrix except the embedding and the head; "in_out" for Conv1D checkpoints
  WeightNames names;
  std::vector<std::string> optional_prefixes;  // a checkpoint may carry names with or without these ("transformer.")
  std::vector<std::string> ignored_suffixes;   // buffers that old checkpoints hold (".rotary_emb.inv_freq")
  std::vector<std::string> ignored_prefixes;   // heads of the family's other classes ("cls.")
  double initializer_range = 0.02;
  DropoutRates dropout;
  std::string quantization;  // method of a quantised checkpoint, empty otherwise
  // How a quantised checkpoint stores the layers' matrices, by the names of passes/quantize_weights.h; empty if the
  // codes cannot be read. Then how it stores embedding and head; empty: as plain numbers.
  std::string weight_codes, embedding_codes, head_codes;

  bool has(std::string_view role) const { return names.contains(role); }
  bool has_experts(int64_t layer) const {
    return !experts.layers.empty() && experts.layers[static_cast<size_t>(layer)];
  }
  // The checkpoint's name of a role's weight; `layer` replaces "{}". Throws InternalError for a role without a name.
  std::string name(std::string_view role, int64_t layer = 0) const;
};

// How fresh weights are drawn.
enum class WeightInit { normal, ones, zeros };

struct WeightInfo {
  std::string name;
  std::vector<int64_t> shape;
  WeightInit init = WeightInit::normal;
  bool decays = true;     // weight decay applies: matrices and embeddings
  bool head = false;      // of a masked-LM or classification head, which checkpoints of the bare model lack
  int64_t zero_row = -1;  // row of zeros in a fresh table: that of padding, which look-ups never train; -1: none
};

// Reads a config of a supported family. Throws Error(format) naming the file, the key, the value and the remedy: an
// unsupported family or architecture by name, contradictory geometry, unsupported variants.
ModelSpec read_model_spec(const HfConfig& config);

// Every weight in the order of the forward pass; tied heads are not listed.
std::vector<WeightInfo> model_weights(const ModelSpec& spec);
// The checkpoint's tensors in which a weight is stored, in the order of its elements: the weight itself, or one per
// expert if its name has a "*".
std::vector<WeightInfo> stored_parts(const WeightInfo& weight);
// Every tensor of a checkpoint, in the same order.
std::vector<WeightInfo> checkpoint_weights(const ModelSpec& spec);
int64_t parameter_count(const ModelSpec& spec);

}  // namespace headroom
