// Attention as graphs of cuDNN's frontend. Includes the long frontend header: include it in one source file only.
#pragma once

#include <cudnn_frontend.h>

#include <memory>
#include <type_traits>

#include "ops/cuda/dnn.h"

namespace headroom::cudnn {

namespace fe = cudnn_frontend;
using fe::graph::Graph;
using Tensor = std::shared_ptr<fe::graph::Tensor_attributes>;

// The numbers of the operands, in the order of AttentionArrays and AttentionGradArrays.
enum Operand : int64_t { kQ = 1, kK, kV, kO, kLse, kGradO, kDq, kDk, kDv };

// The library's [batch, heads, rows, dim] as a view of headroom's [batch, rows, heads * dim]; lse is dense in the
// library's order.
inline void describe(fe::graph::Tensor_attributes& tensor, Operand operand, const AttentionShape& shape) {
  const bool of_keys = operand == kK || operand == kV || operand == kDk || operand == kDv;
  const int64_t heads = of_keys ? shape.kv_heads : shape.heads, rows = of_keys ? shape.keys : shape.queries;
  tensor.set_uid(operand);
  if (operand == kLse)
    tensor.set_dim({shape.batch, heads, rows, 1})
        .set_stride({heads * rows, rows, 1, 1})
        .set_data_type(fe::DataType_t::FLOAT);
  else
    tensor.set_dim({shape.batch, heads, rows, shape.dim})
        .set_stride({rows * heads * shape.dim, shape.dim, heads * shape.dim, 1})
        .set_data_type(fe::DataType_t::BFLOAT16);
}

inline Tensor input(Graph& graph, Operand operand, const AttentionShape& shape) {
  fe::graph::Tensor_attributes tensor;
  describe(tensor, operand, shape);
  return graph.tensor(tensor);
}
inline void set_output(const Tensor& tensor, Operand operand, const AttentionShape& shape) {
  describe(*tensor, operand, shape);
  tensor->set_output(true);
}

// Sets the scale and which keys a query sees: causal up to its own, with a window of w the last w of these.
template <typename Options>
void set_scores(Options& options, const AttentionShape& shape) {
  options.set_attn_scale(static_cast<float>(shape.scale));
  if (!shape.causal) return;
  options.set_diagonal_alignment(fe::DiagonalAlignment_t::TOP_LEFT).set_diagonal_band_right_bound(0);
  if (shape.window > 0 && shape.window < shape.keys)
    options.set_diagonal_band_left_bound(static_cast<int>(shape.window));
}

// Computes o and lse from q, k, v.
inline void add_attention(Graph& graph, const AttentionShape& shape) {
  fe::graph::SDPA_attributes options;
  options.set_generate_stats(true);
  set_scores(options, shape);
  const auto [o, lse] = graph.sdpa(input(graph, kQ, shape), input(graph, kK, shape), input(graph, kV, shape), options);
  set_output(o, kO, shape);
  set_output(lse, kLse, shape);
}

// Computes dq, dk, dv from q, k, v, o, lse, grad_o. Sums have a fixed order unless the shape allows any.
inline void add_attention_grad(Graph& graph, const AttentionShape& shape) {
  fe::graph::SDPA_backward_attributes options;
  options.set_deterministic_algorithm(!shape.any_order);
  set_scores(options, shape);
  const auto [dq, dk, dv] =
      graph.sdpa_backward(input(graph, kQ, shape), input(graph, kK, shape), input(graph, kV, shape),
                          input(graph, kO, shape), input(graph, kGradO, shape), input(graph, kLse, shape), options);
  set_output(dq, kDq, shape);
  set_output(dk, kDk, shape);
  set_output(dv, kDv, shape);
}

// The graph of the call with such arrays, for a compute capability, which a node copies when it is created.
template <typename Arrays>
std::unique_ptr<Graph> graph_of(const AttentionShape& shape, int capability) {
  auto graph = std::make_unique<Graph>();
  graph->set_sm_version(capability)
      .set_io_data_type(fe::DataType_t::BFLOAT16)
      .set_intermediate_data_type(fe::DataType_t::FLOAT)
      .set_compute_data_type(fe::DataType_t::FLOAT);
  if constexpr (std::is_same_v<Arrays, cuda::AttentionArrays>)
    add_attention(*graph, shape);
  else
    add_attention_grad(*graph, shape);
  return graph;
}

}  // namespace headroom::cudnn
