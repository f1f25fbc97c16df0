#include "transformer_timeline.h"

#include <algorithm>

namespace headroom::testing {
namespace {

// Records one op per slot; a tensor lives from the op that makes it to the last op that reads it.
class Tape {
 public:
  using Tensor = size_t;

  // One op: reads tensors, may hold a workspace, makes one tensor per size.
  std::vector<Tensor> op(const std::vector<Tensor>& reads, const std::vector<int64_t>& sizes, int64_t workspace = 0) {
    for (const Tensor tensor : reads) buffers_[tensor].upper = slot_ + 1;
    std::vector<Tensor> made;
    for (const int64_t size : sizes) made.push_back(add(size));
    if (workspace > 0) add(workspace);
    ++slot_;
    return made;
  }
  Tensor op1(const std::vector<Tensor>& reads, int64_t size, int64_t workspace = 0) {
    return op(reads, {size}, workspace)[0];
  }
  void persistent(int64_t size) { persistent_.push_back(add(size)); }

  std::vector<Buffer> finish() {
    for (const Tensor tensor : persistent_) buffers_[tensor].upper = slot_;
    return buffers_;
  }

 private:
  Tensor add(int64_t size) {
    buffers_.push_back({static_cast<int64_t>(buffers_.size()), slot_, slot_ + 1, size, -1});
    return buffers_.size() - 1;
  }

  std::vector<Buffer> buffers_;
  std::vector<Tensor> persistent_;
  int64_t slot_ = 0;
};

// Tensors of one layer's forward that backward reads.
struct LayerTensors {
  Tape::Tensor input, norm1, statistics1, q, k, v, probabilities, context, middle, norm2, statistics2, gate, up,
      activated, output;
};

class Trainer {
 public:
  explicit Trainer(const TransformerTimeline& options) : o_(options) {}

  std::vector<Buffer> run() {
    make_persistent();
    Tape::Tensor x = tape_.op1({}, wide());
    std::vector<LayerTensors> saved;
    for (int layer = 0; layer < o_.layers; ++layer) {
      saved.push_back(forward(x));
      x = saved.back().output;
    }
    Tape::Tensor dx = loss(x);
    for (int layer = o_.layers - 1; layer >= 0; --layer) {
      const KeptActivations kept = kept_by(layer);
      LayerTensors tensors = saved[static_cast<size_t>(layer)];
      if (kept == KeptActivations::input_only) tensors = forward(tensors.input);
      if (kept == KeptActivations::cheap_dropped) recompute_cheap(tensors);
      dx = backward(tensors, dx);
    }
    weight_gradient({dx}, o_.vocab * o_.hidden * 4);
    for (const Tape::Tensor gradient : pending_) tape_.op({gradient}, {}, 4096);
    return tape_.finish();
  }

 private:
  int64_t wide() const { return o_.tokens * o_.hidden * 2; }
  int64_t broad() const { return o_.tokens * o_.ffn * 2; }

  KeptActivations kept_by(int layer) const {
    if (o_.kept != KeptActivations::mixed) return o_.kept;
    if (layer * 3 < o_.layers) return KeptActivations::input_only;
    return layer * 3 < o_.layers * 2 ? KeptActivations::cheap_dropped : KeptActivations::all;
  }

  void make_persistent() {
    const int copies = o_.gradients == WeightGradients::accumulated ? 4 : 3;  // weight, two moments, gradient
    for (int copy = 0; copy < copies; ++copy) {
      tape_.persistent(o_.vocab * o_.hidden * 4);
      for (int layer = 0; layer < o_.layers; ++layer) {
        for (int i = 0; i < 4; ++i) tape_.persistent(o_.hidden * o_.hidden * 4);
        for (int i = 0; i < 3; ++i) tape_.persistent(o_.hidden * o_.ffn * 4);
        for (int i = 0; i < 2; ++i) tape_.persistent(o_.hidden * 4);
      }
    }
  }

  LayerTensors forward(Tape::Tensor x) {
    LayerTensors t{};
    t.input = x;
    norm(x, t.norm1, t.statistics1);
    t.q = projection(t.norm1, wide());
    t.k = projection(t.norm1, wide());
    t.v = projection(t.norm1, wide());
    t.probabilities = tape_.op1({t.q, t.k}, attention_bytes());
    t.context = tape_.op1({t.probabilities, t.v}, wide(), 1 << 16);
    const Tape::Tensor projected = projection(t.context, wide());
    t.middle = tape_.op1({x, projected}, wide());
    norm(t.middle, t.norm2, t.statistics2);
    t.gate = projection(t.norm2, broad());
    t.up = projection(t.norm2, broad());
    t.activated = tape_.op1({t.gate, t.up}, broad());
    const Tape::Tensor down = projection(t.activated, wide());
    t.output = tape_.op1({t.middle, down}, wide());
    return t;
  }

  void recompute_cheap(LayerTensors& t) {
    norm(t.input, t.norm1, t.statistics1);
    norm(t.middle, t.norm2, t.statistics2);
    t.activated = tape_.op1({t.gate, t.up}, broad());
    t.probabilities = tape_.op1({t.q, t.k}, attention_bytes());
  }

  Tape::Tensor backward(const LayerTensors& t, Tape::Tensor dy) {
    const int64_t square = o_.hidden * o_.hidden * 4;
    const int64_t rectangle = o_.hidden * o_.ffn * 4;
    const Tape::Tensor d_activated = projection(dy, broad());
    weight_gradient({dy, t.activated}, rectangle);
    const auto d_gate_up = tape_.op({d_activated, t.gate, t.up}, {broad(), broad()});
    weight_gradient({d_gate_up[0], t.norm2}, rectangle);
    weight_gradient({d_gate_up[1], t.norm2}, rectangle);
    const Tape::Tensor d_gate_in = projection(d_gate_up[0], wide());
    const Tape::Tensor d_up_in = projection(d_gate_up[1], wide());
    const Tape::Tensor d_norm2 = tape_.op1({d_gate_in, d_up_in}, wide());
    const Tape::Tensor d_middle_norm = tape_.op1({d_norm2, t.middle, t.statistics2}, wide(), 3000);
    const Tape::Tensor d_middle = tape_.op1({d_middle_norm, dy}, wide());
    const Tape::Tensor d_context = projection(d_middle, wide());
    weight_gradient({d_middle, t.context}, square);
    const Tape::Tensor d_probabilities = tape_.op1({d_context, t.v}, attention_bytes());
    const Tape::Tensor d_v = tape_.op1({t.probabilities, d_context}, wide());
    const Tape::Tensor d_scores = tape_.op1({d_probabilities, t.probabilities}, attention_bytes());
    const Tape::Tensor d_q = tape_.op1({d_scores, t.k}, wide());
    const Tape::Tensor d_k = tape_.op1({d_scores, t.q}, wide());
    Tape::Tensor d_norm1 = 0;
    for (const Tape::Tensor d : {d_q, d_k, d_v}) {
      weight_gradient({d, t.norm1}, square);
      const Tape::Tensor part = projection(d, wide());
      d_norm1 = d == d_q ? part : tape_.op1({d_norm1, part}, wide());
    }
    const Tape::Tensor d_input_norm = tape_.op1({d_norm1, t.input, t.statistics1}, wide(), 3000);
    return tape_.op1({d_input_norm, d_middle}, wide());
  }

  Tape::Tensor loss(Tape::Tensor x) {
    const int64_t chunk_tokens = o_.tokens / o_.loss_chunks;
    const Tape::Tensor dx = tape_.op1({x}, wide());
    for (int chunk = 0; chunk < o_.loss_chunks; ++chunk) {
      const Tape::Tensor logits = tape_.op1({x}, chunk_tokens * o_.vocab * 4);
      const Tape::Tensor d_logits = tape_.op1({logits}, chunk_tokens * o_.vocab * 4, 4 * chunk_tokens);
      tape_.op({d_logits, dx}, {}, 1 << 16);
      tape_.op({d_logits, x}, {}, 1 << 16);
    }
    return dx;
  }

  int64_t attention_bytes() const { return o_.tokens * o_.heads * 128; }
  Tape::Tensor projection(Tape::Tensor x, int64_t bytes) { return tape_.op1({x}, bytes, 394'624); }
  void norm(Tape::Tensor x, Tape::Tensor& y, Tape::Tensor& statistics) {
    const auto made = tape_.op({x}, {wide(), o_.tokens * 8});
    y = made[0];
    statistics = made[1];
  }

  void weight_gradient(const std::vector<Tape::Tensor>& reads, int64_t bytes) {
    if (o_.gradients == WeightGradients::accumulated) {
      tape_.op(reads, {}, 394'624);
      return;
    }
    const Tape::Tensor gradient = tape_.op1(reads, bytes, 394'624);
    if (o_.gradients == WeightGradients::kept) {
      pending_.push_back(gradient);
    } else {
      tape_.op({gradient}, {}, 4096);
    }
  }

  TransformerTimeline o_;
  Tape tape_;
  std::vector<Tape::Tensor> pending_;
};

}  // namespace

std::vector<Buffer> make_transformer_timeline(const TransformerTimeline& options) { return Trainer(options).run(); }

}  // namespace headroom::testing
