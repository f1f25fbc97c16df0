// Parameter counts from a shape. Sums are in double: exact up to 2^53, and no configuration makes them overflow.
#include "doctor/model/shape_count.h"

namespace headroom::doctor {
namespace {

struct Counts {
  double attention = 0, attention_linear = 0, norms = 0;
};

double norm_width(const FamilyFacts& facts, double width) { return facts.norm_bias ? 2 * width : width; }

// DeepSeek's multi-head latent attention: low-rank queries (if query_rank is given), keys and values.
Counts latent_attention(const ModelShape& shape, const CountOptions& o) {
  const double hidden = static_cast<double>(shape.hidden), heads = static_cast<double>(shape.heads);
  const double query_dim = static_cast<double>(o.nope_head_dim + o.rope_head_dim);
  const double value_dim = static_cast<double>(shape.value_head_dim > 0 ? shape.value_head_dim : shape.head_dim);
  const double rank = static_cast<double>(o.key_value_rank), query_rank = static_cast<double>(o.query_rank);
  Counts c;
  c.attention_linear +=
      query_rank > 0 ? hidden * query_rank + query_rank * heads * query_dim : hidden * heads * query_dim;
  c.attention_linear += hidden * (rank + static_cast<double>(o.rope_head_dim));
  c.attention_linear += rank * heads * (static_cast<double>(o.nope_head_dim) + value_dim);
  c.attention_linear += heads * value_dim * hidden;
  c.attention = c.attention_linear + rank + query_rank;  // the norms of the two latent vectors
  return c;
}

Counts plain_attention(const ModelShape& shape, const FamilyFacts& facts, const CountOptions& o) {
  const double hidden = static_cast<double>(shape.hidden), dim = static_cast<double>(shape.head_dim);
  const double queries = static_cast<double>(shape.heads) * dim, keys = static_cast<double>(shape.kv_heads) * dim;
  Counts c;
  c.attention_linear = hidden * (queries + 2 * keys) + queries * hidden;
  c.attention = c.attention_linear;
  if (facts.qkv_bias || o.attention_bias) c.attention += queries + 2 * keys;
  if (facts.output_bias || (o.attention_bias && shape.family == "llama")) c.attention += hidden;
  if (facts.query_key_norm == QueryKeyNorm::per_head) c.attention += 2 * dim;
  if (facts.query_key_norm == QueryKeyNorm::full_width) c.attention += queries + keys;
  return c;
}

double mlp_matrices(const ModelShape& shape, double width) {
  return static_cast<double>(shape.hidden) * width * (shape.gated_mlp ? 3 : 2);
}

double mlp_biases(const ModelShape& shape, const FamilyFacts& facts, const CountOptions& o) {
  if (!facts.mlp_bias && !o.mlp_bias) return 0;
  return static_cast<double>(shape.intermediate) * (shape.gated_mlp ? 2 : 1) + static_cast<double>(shape.hidden);
}

// Tables, norms and heads outside the layers.
double outside_layers(const ModelShape& shape, const FamilyFacts& facts, const CountOptions& o) {
  const double hidden = static_cast<double>(shape.hidden), vocab = static_cast<double>(shape.vocab);
  double sum = 0;
  if (facts.positions == PositionKind::learned) {
    const double offset = shape.family == "opt" ? 2 : 0;  // OPT keeps two rows for padding
    sum += (static_cast<double>(shape.max_positions) + offset) * hidden;
  }
  sum += static_cast<double>(o.token_types) * hidden;
  if (facts.embedding_norm) sum += norm_width(facts, hidden);
  if (facts.final_norm) sum += norm_width(facts, hidden);
  if (facts.head_bias && shape.labels == 0) sum += vocab;
  if (o.pooler) sum += hidden * hidden + hidden;
  if (o.mlm_head) sum += hidden * hidden + hidden + norm_width(facts, hidden) + vocab;
  if (shape.labels > 0) sum += static_cast<double>(shape.labels) * hidden;
  return sum;
}

void count_encoder_decoder(ModelShape& shape) {
  const double hidden = static_cast<double>(shape.hidden);
  const double inner = static_cast<double>(shape.heads * shape.head_dim);
  const double attention = 4 * hidden * inner, mlp = mlp_matrices(shape, static_cast<double>(shape.intermediate));
  const double encoder = attention + mlp + 2 * hidden, decoder = 2 * attention + mlp + 3 * hidden;
  const double buckets = 32 * static_cast<double>(shape.heads);  // relative positions, in the first layer of each stack
  const double encoders = static_cast<double>(shape.encoder_layers), decoders = static_cast<double>(shape.layers);
  shape.embedding_parameters = static_cast<double>(shape.vocab) * hidden * (shape.tied ? 1 : 2);
  shape.layer_parameters = decoder;
  shape.linear_parameters = encoders * (attention + mlp) + decoders * (2 * attention + mlp);
  shape.parameters = shape.embedding_parameters + encoders * encoder + decoders * decoder + 2 * buckets + 2 * hidden;
  shape.active_parameters = shape.parameters;
}

}  // namespace

const FamilyFacts& facts_or_llama(const std::string& model_type) {
  const FamilyFacts* facts = find_family_facts(model_type);
  return facts != nullptr ? *facts : *find_family_facts("llama");
}

void take_facts(ModelShape& shape, const FamilyFacts& facts) {
  shape.gated_mlp = facts.mlp == MlpKind::gated;
  shape.rms_norm = facts.norm == NormKind::rms;
  shape.norms_per_layer = facts.norms_per_layer;
  shape.query_key_norm = facts.query_key_norm != QueryKeyNorm::none;
  shape.parallel_residual = facts.parallel_residual;
  shape.encoder_only = facts.encoder_only;
  shape.encoder_decoder = facts.encoder_decoder;
  shape.activation = facts.activation;
  shape.attention_dropout = shape.hidden_dropout = facts.dropout;
}

void count_parameters(ModelShape& shape, const FamilyFacts& facts, const CountOptions& o) {
  if (shape.encoder_decoder) return count_encoder_decoder(shape);
  const double hidden = static_cast<double>(shape.hidden), layers = static_cast<double>(shape.layers);
  const Counts attention = o.key_value_rank > 0 ? latent_attention(shape, o) : plain_attention(shape, facts, o);
  const double norms = facts.norms_per_layer * norm_width(facts, hidden);
  const double dense_mlp = mlp_matrices(shape, static_cast<double>(shape.intermediate));
  const double rest = attention.attention + norms;
  const double plain_layer = rest + dense_mlp + mlp_biases(shape, facts, o);
  const double table =
      static_cast<double>(shape.vocab) * static_cast<double>(o.embedding_width > 0 ? o.embedding_width : shape.hidden);
  const bool own_head = !shape.tied && shape.labels == 0 && !shape.encoder_only && shape.vocab > 0;
  shape.embedding_parameters = own_head ? 2 * table : table;
  if (o.embedding_width > 0) shape.embedding_parameters += 2 * static_cast<double>(o.embedding_width) * hidden;
  const double outside = shape.embedding_parameters + outside_layers(shape, facts, o);
  if (shape.experts == 0) {
    shape.layer_parameters = plain_layer;
    shape.linear_parameters = layers * (attention.attention_linear + dense_mlp);
    shape.parameters = shape.active_parameters = outside + layers * plain_layer;
    return;
  }
  const double expert = mlp_matrices(shape, static_cast<double>(shape.moe_intermediate));
  const double shared =
      mlp_matrices(shape, static_cast<double>(shape.shared_intermediate)) + (o.shared_expert_gate ? hidden : 0);
  const double experts = static_cast<double>(shape.experts), dense = static_cast<double>(shape.dense_layers);
  const double router = experts * hidden + (o.router_bias ? experts : 0);
  const double sparse_layer = rest + router + shared + experts * expert, sparse = layers - dense;
  shape.layer_parameters = sparse > 0 ? sparse_layer : plain_layer;
  shape.linear_parameters =
      layers * attention.attention_linear + dense * dense_mlp + sparse * (shared + experts * expert);
  shape.parameters = outside + dense * plain_layer + sparse * sparse_layer;
  shape.active_parameters =
      shape.parameters - sparse * (experts - static_cast<double>(shape.experts_per_token)) * expert;
}

}  // namespace headroom::doctor
