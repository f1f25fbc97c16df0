#include "doctor/model/activation_memory.h"

#include <algorithm>

#include "base/error.h"

namespace headroom::doctor {
namespace {

bool one_of(const std::string& name, std::initializer_list<const char*> names) {
  return std::any_of(names.begin(), names.end(), [&](const char* n) { return name == n; });
}

// Families whose fused query-key-value product stays alive as the storage of the values: rotary positions make new
// queries and keys, but the values remain a view.
bool keeps_fused_product(const ModelShape& shape, Library library) {
  if (library == Library::litgpt) return shape.kv_heads == shape.heads;  // else keys and values are copied to all heads
  return library == Library::transformers && one_of(shape.family, {"gpt_neox", "phi3"});
}

// The bytes per token of one layer, part by part. Element widths: c of a product's operands, r of the residual stream,
// o of a linear layer's output, a of attention's operands.
class LayerLedger {
 public:
  LayerLedger(const ModelShape& shape, const TrainSettings& s)
      : shape_(shape),
        s_(s),
        c_(s.compute_width),
        r_(s.residual_width()),
        o_(s.output_width()),
        a_(s.attention_width()) {
    hidden_ = static_cast<double>(shape.hidden);
    const double dim = static_cast<double>(shape.head_dim);
    value_dim_ = static_cast<double>(shape.value_head_dim > 0 ? shape.value_head_dim : shape.head_dim);
    heads_ = static_cast<double>(shape.heads) / s.tensor;
    queries_ = heads_ * dim;
    keys_ = static_cast<double>(shape.kv_heads) * dim / s.tensor;
    trained_ = !s.frozen();
  }

  // A hand-written RMSNorm keeps its float32 input, and the normalised value for its weight's gradient. torch's
  // LayerNorm and compiled norms keep only their input.
  double norms() const {
    const double count = static_cast<double>(shape_.norms_per_layer);
    const bool by_hand = shape_.rms_norm && !s_.compiled && s_.library != Library::megatron;
    double bytes = 0;
    if (by_hand) {
      bytes = count * hidden_ * (4 + (trained_ ? r_ : 0));
    } else {
      // Autocast copies a narrower stream to float32 for each LayerNorm. Otherwise two parallel norms read and keep the
      // same tensor.
      const bool copied = s_.cast_products && r_ < 4 && !s_.compiled;
      bytes = copied ? count * hidden_ * 4 : (shape_.parallel_residual ? 1 : count) * hidden_ * r_;
    }
    if (shape_.query_key_norm) bytes += (queries_ + keys_) * (by_hand ? 4 + (trained_ ? c_ : 0) : c_);
    return bytes;
  }

  // Inputs of the products that read a norm's output. Under autocast each product makes its own cast copy.
  double product_inputs() const {
    if (!trained_) return 0;
    const double groups = shape_.parallel_residual && shape_.norms_per_layer == 1 ? 1 : 2;
    if (!s_.autocast && !(s_.cast_products && !shape_.rms_norm)) return groups * hidden_ * c_;
    const bool one_qkv = one_of(shape_.family, {"gpt2", "gpt_neox", "phi3", "falcon", "bloom", "mpt", "dbrx"});
    const double mlp = shape_.gated_mlp && shape_.family != "phi3" ? 2 : 1;
    return ((one_qkv ? 1 : 3) + mlp) * hidden_ * c_;
  }

  double attention() const {
    const bool repeated = s_.attention != AttentionKernel::fused;
    const double keys = repeated ? queries_ : keys_;
    const double values = repeated ? heads_ * value_dim_ : keys_ / static_cast<double>(shape_.head_dim) * value_dim_;
    const double output = heads_ * value_dim_;
    double bytes = (queries_ + keys + values) * a_;
    if (s_.attention == AttentionKernel::eager)
      bytes += heads_ * square_width() * s_.sequence + (trained_ ? output * a_ : 0);
    else
      bytes += output * a_ + heads_ * 4;  // and the log-sum-exp
    // A cast copy is not a view: the fused product is then freed.
    if (keeps_fused_product(shape_, s_.library) && a_ == o_) bytes += (queries_ + keys_) * o_;
    // GPT-J multiplies queries and keys in float32.
    if (shape_.family == "gptj" && s_.attention == AttentionKernel::eager && !s_.cast_products)
      bytes += (queries_ + keys) * (4 - a_);
    if (shape_.kv_latent > 0) bytes += static_cast<double>(shape_.kv_latent) * (4 + c_);
    return bytes;
  }

  // Bytes kept per score: the float32 softmax, its copy in the compute width, and dropout's mask and output.
  double square_width() const {
    const bool upcast = !one_of(shape_.family, {"bert", "roberta", "distilbert", "gpt2", "vit"}) || s_.autocast;
    double width = upcast ? 4 : c_;
    const bool copy = upcast && c_ < 4;
    if (shape_.attention_dropout <= 0) return width + (copy ? c_ : 0);
    if (s_.cpu) return width + (copy ? c_ : 0) + 2 * c_;  // noise in the same width, and the output
    return width + c_ + 1;
  }

  double mlp() const {
    if (shape_.experts > 0) return mixture();
    return dense_mlp(static_cast<double>(shape_.intermediate) / s_.tensor);
  }

  double dense_mlp(double inner) const {
    const double product = trained_ ? c_ : 0;
    if (shape_.gated_mlp) return inner * ((s_.compiled ? 2 : 3) * o_ + product);
    if (shape_.activation == "relu") return inner * o_;  // the product's input is relu's output, which is kept
    const bool by_hand = one_of(shape_.activation, {"gelu_new", "gelu_fast", "gelu_python_tanh"}) &&
                         shape_.family != "bloom" && !s_.compiled && s_.library == Library::transformers;
    // 0.5 x (1 + tanh(...)): the input (cast for pow under autocast), tanh, 1 + tanh, 0.5 x.
    const double kept = by_hand ? (s_.cast_products && o_ < 4 ? 14 : 4 * o_) : o_;
    return inner * (kept + product);
  }

  double mixture() const {
    const double routed = static_cast<double>(shape_.experts_per_token);
    const double inner = static_cast<double>(shape_.moe_intermediate) / s_.tensor;
    const double gathered = routed * hidden_ * c_ * 2;  // rows copied to their experts and back
    const double sparse =
        gathered + routed * dense_mlp(inner) + dense_mlp(static_cast<double>(shape_.shared_intermediate));
    const double dense = dense_mlp(static_cast<double>(shape_.intermediate));
    const double layers = static_cast<double>(shape_.layers), plain = static_cast<double>(shape_.dense_layers);
    return (sparse * (layers - plain) + dense * plain) / layers;
  }

  double dropout() const {
    if (shape_.hidden_dropout <= 0) return 0;
    return 2 * hidden_ * (s_.cpu ? 2 * c_ : 1);  // on the CPU noise and input, on a GPU one byte of mask
  }

  // LoRA keeps the input of its first product. PEFT's adapters are float32. Under autocast each target casts the input
  // to the compute width, otherwise to float32; a float32 stream is used as it is and shared by targets with the same
  // input. With dropout each target keeps its own input and one byte of mask per element (on the CPU noise of full
  // width).
  double adapters() const {
    if (!s_.lora) return 0;
    const Adapters a = lora_adapters(shape_, s_);
    const double rank = static_cast<double>(s_.lora_settings.rank);
    const bool peft = s_.library == Library::transformers;
    const double width = peft && !s_.cast_products ? s_.adapter_width : c_;
    const bool copied = peft && (s_.cast_products || o_ != s_.adapter_width);
    double inputs = copied ? a.input_width * width : a.shared_input_width * o_;
    if (s_.lora_settings.dropout > 0) {
      // LitGPT applies dropout once to the input of queries, keys and values.
      const double dropped = s_.library == Library::litgpt ? a.distinct_input_width : a.input_width;
      inputs = dropped * (s_.cpu ? 2 * width : width + 1);
    }
    return inputs + a.targets * rank * width + padded_adapters();
  }

  // LitGPT expands the adapters' outputs to the fused product's columns, and keeps them unless queries, keys and values
  // all have adapters.
  double padded_adapters() const {
    if (s_.library != Library::litgpt) return 0;
    double outputs = 0, all = 0;
    for (const std::string& name : s_.lora_settings.targets) {
      const double width = name == "q_proj" ? queries_ : name == "k_proj" || name == "v_proj" ? keys_ : 0;
      outputs += width * c_;
      all += width > 0 ? 1 : 0;
    }
    return all < 3 ? outputs : 0;
  }

  // The largest temporaries of the layer's backward per token: gradients in the MLP, or of the scores.
  double backward() const {
    const double inner = static_cast<double>(shape_.experts > 0 ? shape_.moe_intermediate * shape_.experts_per_token
                                                                : shape_.intermediate) /
                         s_.tensor;
    const double mlp = inner * o_ * (shape_.gated_mlp ? 3 : 2) + 2 * hidden_ * r_;
    const double scores = s_.attention == AttentionKernel::eager ? heads_ * s_.sequence * (8 + c_) : 0;
    return std::max(mlp, scores + 4 * queries_ * c_);
  }

  double forward() const {
    const double inner = static_cast<double>(shape_.experts > 0 ? shape_.moe_intermediate * shape_.experts_per_token
                                                                : shape_.intermediate) /
                         s_.tensor;
    const double scores = s_.attention == AttentionKernel::eager ? heads_ * s_.sequence * (8 + c_) : 0;
    return 2 * hidden_ * r_ + std::max(inner * 3 * c_, scores + 4 * queries_ * c_);
  }

  double total() const { return norms() + product_inputs() + attention() + mlp() + dropout() + adapters(); }
  double boundary() const { return hidden_ * r_; }

 private:
  const ModelShape& shape_;
  const TrainSettings& s_;
  double c_, r_, o_, a_, hidden_ = 0, value_dim_ = 0, heads_ = 0, queries_ = 0, keys_ = 0;
  bool trained_ = true;
};

}  // namespace

LayerActivations layer_activations(const ModelShape& shape, const TrainSettings& s) {
  const LayerLedger ledger(shape, s);
  const double tokens = s.tokens();
  LayerActivations a;
  a.saved = ledger.total() * tokens;
  a.boundary = ledger.boundary() * tokens;
  a.backward = ledger.backward() * tokens;
  a.forward = ledger.forward() * tokens;
  a.how = fmt::format(
      "{:.0f} tokens x (norms {:.0f} + inputs {:.0f} + attention {:.0f} + mlp {:.0f} + dropout {:.0f} + "
      "adapters {:.0f}) B",
      tokens, ledger.norms(), ledger.product_inputs(), ledger.attention(), ledger.mlp(), ledger.dropout(),
      ledger.adapters());
  return a;
}

Activations network_activations(const ModelShape& shape, const TrainSettings& s) {
  const LayerActivations layer = layer_activations(shape, s);
  const double layers = static_cast<double>(shape.layers + shape.encoder_layers) / s.pipeline;
  const double in_flight = s.pipeline;  // a pipeline stage holds as many micro-batches as there are stages
  Activations out;
  out.backward = layer.backward;
  double kept = layers * layer.saved;
  std::string how = fmt::format("{:.0f} layers x {}", layers, layer.how);
  if (s.checkpointing == Checkpointing::selective) {
    kept = layers * (layer.saved + layer.boundary) / 2;
    out.recomputed = layer.saved;
    how += ", every other layer recomputed";
  } else if (s.checkpointing == Checkpointing::full) {
    kept = layers * layer.boundary;
    out.recomputed = layer.saved;
    how = fmt::format("{:.0f} layer inputs x {:.0f} B", layers, layer.boundary);
  }
  if (s.activation_offload) {
    kept = std::min(kept, 2 * (s.checkpointing == Checkpointing::none ? layer.saved : layer.boundary));
    how += ", offloaded but for two layers";
  }
  // The final norm, and the head's input.
  kept += s.tokens() * static_cast<double>(shape.hidden) * (shape.rms_norm ? 4 + s.compute_width : s.compute_width);
  out.kept = {kept * in_flight, how};
  return out;
}

namespace {
constexpr double kLitGptPiece = 128;  // lm_head_chunk_size in litgpt/finetune/*.py
}

LossBytes loss_bytes(const ModelShape& shape, const TrainSettings& s) {
  LossBytes out;
  if (s.loss == LossKind::none || shape.vocab == 0) return out;
  const double cells = s.tokens() * static_cast<double>(shape.vocab) / s.tensor, c = s.attention_width();
  const double table = static_cast<double>(shape.vocab) * static_cast<double>(shape.hidden) / s.tensor * s.weight_width;
  double alive = c, peak = 0, evaluation = c + (c < 4 ? 4 : 0) + 4;
  const char* how = "";
  switch (s.loss) {
    case LossKind::upcast:  // logits + float32 log-softmax and two float32 gradients
      alive = s.library == Library::torchtune ? 0 : s.logits_float_output ? 4 : c;
      peak = alive + 12;
      how = "logits + float32 log-softmax and two float32 gradients";
      break;
    case LossKind::upcast_old:  // float32 logits + shifted copy or gradients
      alive = 4;
      peak = 16;
      evaluation = 12;
      how = "float32 logits, log-softmax and two gradients";
      break;
    case LossKind::half:  // the pieces' saved tensors go as soon as the loss's backward has passed
      alive = 0;
      peak = 4 * c;
      evaluation = 3 * c;
      how = "logits, log-softmax and two gradients in the compute width";
      break;
    case LossKind::half_pieces: {  // a head's piece is done, and its gradient gone, before the next one's begins
      const double piece = std::min(1.0, kLitGptPiece / s.sequence);
      alive = 0;
      peak = 2 * c + 2 * c * piece;
      evaluation = 3 * c;
      how = "logits and log-softmax in the compute width, two gradients of a piece of 128 tokens";
      break;
    }
    case LossKind::chunked: {  // logits of all chunks, float32 work on one of eight
      const double work = s.compiled ? c / 8 : 4 + 8.0 / 8;
      alive = 0;
      peak = c + work;
      evaluation = c + 1;
      how = "logits in chunks, float32 work on one of eight";
      break;
    }
    case LossKind::fused_chunked:  // gradients inside the forward; a chunk has about as many cells as the hidden states
      out.alive = s.tokens() * static_cast<double>(shape.hidden) * c + (s.frozen() ? 0 : table);
      out.peak = out.alive + 3 * s.tokens() * static_cast<double>(shape.hidden) * 4;
      out.evaluation = out.peak;
      out.how = "fused head and loss: chunks as large as the hidden states";
      return out;
    case LossKind::none:
      return out;
  }
  out.alive = alive * cells;
  out.peak = peak * cells;
  if (s.loss == LossKind::chunked && !s.frozen()) out.peak += 2 * table;  // the head's gradient, summed chunk by chunk
  out.evaluation = evaluation * cells;
  out.how = fmt::format("{:.0f} x {} {}: {} B each", s.tokens(), shape.vocab, how, peak);
  return out;
}

}  // namespace headroom::doctor
