// The layers of a model as graph nodes: what the programs of training and of generation share.
#pragma once

#include <functional>
#include <map>
#include <string>

#include "ir/builder.h"
#include "models/model_spec.h"

namespace headroom {

// What the layers of one program read besides the weights.
struct LayerInputs {
  ValueId rope_table = kNone;
  ValueId local_rope_table = kNone;  // of windowed layers, if they have their own
  ValueId offset = kNone;            // i32[1]: rows of the cache already filled; kNone when training
  ValueId hyper = kNone;             // f32[16]: the step's scalars (ops/step_scalars.h); kNone: nothing is dropped
  ValueId types = kNone;             // i32[batch, seq]: token types; kNone: all 0
  ValueId lengths = kNone;           // i32[batch]: tokens of each row, if experts' loads are balanced
  ValueId* loads = nullptr;          // the sums of ops/moe_balance, replaced by each layer; nullptr: not wanted
};

class Layers {
 public:
  // Computes attention from q, k and v, which are already normalised and rotated.
  using Attend = std::function<ValueId(Builder& build, int64_t layer, ValueId q, ValueId k, ValueId v)>;

  // Adds the weights to the graph, persistent and named as in the checkpoint. Keeps references to `spec` and `graph`.
  Layers(const ModelSpec& spec, Graph& graph);

  // Adds the program "load", which fills the tables that are computed instead of read: the rotary ones.
  LayerInputs build_load(int64_t positions);

  // Token ids -> final hidden states.
  ValueId hidden_states(Builder& build, ValueId ids, const LayerInputs& in, const Attend& attend) const;

  // The input of the output projection: the hidden states, or the output of the head's layer for them.
  ValueId head_input(Builder& build, ValueId hidden, const LayerInputs& in = {}) const;
  // The output projection's weight, and its bias or kNone.
  ValueId head() const { return weight(spec_.tied ? "embed" : "head"); }
  ValueId head_bias() const { return bias("head", 0); }
  // A layer's attention without a cache, with dropout in training. `lengths`: tokens of each row, or kNone.
  ValueId attention(Builder& build, int64_t layer, ValueId q, ValueId k, ValueId v, ValueId lengths,
                    const LayerInputs& in) const;
  // Attributes of a layer's attention op, except those of dropout.
  Attrs attention_attrs(int64_t layer) const;

 private:
  ValueId weight(std::string_view role, int64_t layer = 0) const { return weights_.at(spec_.name(role, layer)); }
  ValueId bias(std::string_view role, int64_t layer) const;
  int64_t window(int64_t layer) const { return spec_.windows[static_cast<size_t>(layer)]; }
  ValueId rope_table(Builder& build, const char* name, int64_t positions, double theta, const RopeScaling& scaling);
  ValueId norm(Builder& build, ValueId x, std::string_view role, int64_t layer, bool joins_stream = false) const;
  ValueId norm_before(Builder& build, ValueId x, std::string_view role, int64_t layer) const;
  ValueId linear(Builder& build, ValueId x, std::string_view role, int64_t layer, ValueId residual = kNone) const;
  ValueId embed(Builder& build, ValueId ids, const LayerInputs& in) const;
  ValueId join(Builder& build, ValueId x, std::string_view role, std::string_view half, int64_t layer, ValueId residual,
               const LayerInputs& in) const;
  ValueId dropout(Builder& build, ValueId x, double rate, std::string_view place, int64_t layer, const LayerInputs& in,
                  bool joins_stream = false) const;
  ValueId position(Builder& build, ValueId x, int64_t heads, std::string_view norm_role, int64_t layer,
                   const LayerInputs& in) const;
  ValueId attention_half(Builder& build, ValueId x, int64_t layer, const LayerInputs& in, const Attend& attend) const;
  ValueId gated_unit(Builder& build, ValueId gate, ValueId up) const;
  ValueId experts_half(Builder& build, ValueId x, int64_t layer, ValueId residual, const LayerInputs& in) const;
  ValueId mlp_half(Builder& build, ValueId x, int64_t layer, ValueId residual, const LayerInputs& in) const;

  const ModelSpec& spec_;
  Graph& graph_;
  std::map<std::string, ValueId> weights_;
};

}  // namespace headroom
