#include "models/model_spec.h"

namespace headroom {
namespace {

class WeightList {
 public:
  explicit WeightList(const ModelSpec& spec) : spec_(spec) {}

  void matrix(std::string_view role, int64_t out, int64_t in, int64_t layer) {
    if (!spec_.has(role)) return;
    std::vector<int64_t> shape =
        spec_.layout == "in_out" ? std::vector<int64_t>{in, out} : std::vector<int64_t>{out, in};
    weights_.push_back({spec_.name(role, layer), std::move(shape), WeightInit::normal, true});
    vector(std::string(role) + "_bias", out, layer, WeightInit::zeros);
  }
  // The matrices of all experts of a layer.
  void experts(std::string_view role, int64_t out, int64_t in, int64_t layer) {
    weights_.push_back({spec_.name(role, layer), {spec_.experts.count, out, in}, WeightInit::normal, true});
  }
  void table(std::string_view role, int64_t rows, int64_t width, int64_t zero_row = -1) {
    if (spec_.has(role))
      weights_.push_back({spec_.name(role), {rows, width}, WeightInit::normal, true, false, zero_row});
  }
  void norm(std::string_view role, int64_t layer, int64_t width) {
    vector(role, width, layer, spec_.unit_norm ? WeightInit::zeros : WeightInit::ones);
    vector(std::string(role) + "_bias", width, layer, WeightInit::zeros);
  }
  void vector(std::string_view role, int64_t size, int64_t layer, WeightInit init) {
    if (spec_.has(role)) weights_.push_back({spec_.name(role, layer), {size}, init, false});
  }
  size_t size() const { return weights_.size(); }
  void mark_heads(size_t first) {
    for (size_t i = first; i < weights_.size(); ++i) weights_[i].head = true;
  }
  std::vector<WeightInfo> take() { return std::move(weights_); }

 private:
  const ModelSpec& spec_;
  std::vector<WeightInfo> weights_;
};

void list_mlp(WeightList& list, const ModelSpec& spec, int64_t layer) {
  if (spec.has_experts(layer)) {
    list.matrix("router", spec.experts.count, spec.hidden, layer);
    list.experts("expert_gate", spec.experts.intermediate, spec.hidden, layer);
    list.experts("expert_up", spec.experts.intermediate, spec.hidden, layer);
    list.experts("expert_down", spec.hidden, spec.experts.intermediate, layer);
    return;
  }
  list.matrix("gate", spec.intermediate, spec.hidden, layer);
  list.matrix("up", spec.intermediate, spec.hidden, layer);
  list.matrix("gate_up", 2 * spec.intermediate, spec.hidden, layer);
  list.matrix("down", spec.hidden, spec.intermediate, layer);
}

}  // namespace

std::vector<WeightInfo> model_weights(const ModelSpec& spec) {
  WeightList list(spec);
  const int64_t q = spec.heads * spec.head_dim, kv = spec.kv_heads * spec.head_dim;
  list.table("embed", spec.vocab, spec.hidden, spec.padding_row);
  list.table("positions", spec.first_position + spec.max_positions, spec.hidden, spec.first_position - 1);
  list.table("types", spec.type_vocab, spec.hidden);
  list.norm("embed_norm", 0, spec.hidden);
  for (int64_t layer = 0; layer < spec.layers; ++layer) {
    list.norm("attn_norm", layer, spec.hidden);
    list.matrix("q", q, spec.hidden, layer);
    list.matrix("k", kv, spec.hidden, layer);
    list.matrix("v", kv, spec.hidden, layer);
    list.matrix("qkv", q + 2 * kv, spec.hidden, layer);
    list.norm("q_norm", layer, spec.qk_norm_whole ? q : spec.head_dim);
    list.norm("k_norm", layer, spec.qk_norm_whole ? kv : spec.head_dim);
    list.matrix("o", spec.hidden, q, layer);
    list.norm("attn_post_norm", layer, spec.hidden);
    list.norm("attn_sum_norm", layer, spec.hidden);
    list.norm("ffn_norm", layer, spec.hidden);
    list_mlp(list, spec, layer);
    list.norm("ffn_post_norm", layer, spec.hidden);
    list.norm("ffn_sum_norm", layer, spec.hidden);
  }
  list.norm("final_norm", 0, spec.hidden);
  const size_t body = list.size();
  list.matrix("pooler", spec.hidden, spec.hidden, 0);
  list.matrix("transform", spec.hidden, spec.hidden, 0);
  list.norm("transform_norm", 0, spec.hidden);
  const int64_t outputs = spec.objective == Objective::classification ? spec.classes : spec.vocab;
  list.table("head", outputs, spec.hidden);
  list.vector("head_bias", outputs, 0, WeightInit::zeros);
  if (spec.objective == Objective::masked || spec.objective == Objective::classification) list.mark_heads(body);
  return list.take();
}

std::vector<WeightInfo> stored_parts(const WeightInfo& weight) {
  const size_t star = weight.name.find('*');
  if (star == std::string::npos) return {weight};
  std::vector<WeightInfo> parts;
  for (int64_t expert = 0; expert < weight.shape.at(0); ++expert) {
    WeightInfo& part = parts.emplace_back(weight);
    part.name.replace(star, 1, std::to_string(expert));
    part.shape.erase(part.shape.begin());
  }
  return parts;
}

std::vector<WeightInfo> checkpoint_weights(const ModelSpec& spec) {
  std::vector<WeightInfo> all;
  for (const WeightInfo& weight : model_weights(spec))
    for (WeightInfo& part : stored_parts(weight)) all.push_back(std::move(part));
  return all;
}

int64_t parameter_count(const ModelSpec& spec) {
  int64_t count = 0;
  for (const WeightInfo& weight : model_weights(spec)) {
    int64_t elements = 1;
    for (int64_t dim : weight.shape) elements *= dim;
    count += elements;
  }
  return count;
}

}  // namespace headroom
