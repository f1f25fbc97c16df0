// The sizes behind the fused output projection and loss, shared by rules and kernels.
#pragma once

#include <algorithm>
#include <cstdint>

#include "ir/op.h"
#include "ops/cpu/onednn_scratch.h"
#include "ops/linear/shape.h"

namespace headroom {

// Logits of at most `chunk` of the `rows` rows exist at a time.
struct LossShape {
  int64_t rows = 0;      // batch * sequence
  int64_t sequence = 0;  // positions per sequence; the last has no target
  int64_t vocabulary = 0;
  int64_t hidden = 0;
  int64_t chunk = 0;
  bool out_in = true;
};

inline LossShape loss_shape(const OpCall& call) {
  const LinearShape linear = linear_shape(call.inputs[0], call.inputs[1], call.attrs);
  const int64_t chunk = call.attrs.integer("chunk");
  return {linear.rows,
          call.inputs[2].dims.back(),
          linear.outs,
          linear.ins,
          std::max<int64_t>(1, chunk > 0 ? std::min(chunk, linear.rows) : linear.rows),
          linear.out_in};
}

// Parts of the scratch, in this order, each a multiple of 64 bytes.
struct LossScratch {
  int64_t logits = 0;     // chunk * vocabulary f32; dlogits overwrite them
  int64_t losses = 0;     // one f64 per row of a chunk
  int64_t workspace = 0;  // of the library's largest product
  int64_t total() const { return logits + losses + workspace; }
};

inline int64_t to_lines(int64_t bytes) { return (bytes + 63) / 64 * 64; }

inline LossScratch loss_scratch(const OpCall& call, const DeviceFacts& facts, bool gradient) {
  const LossShape s = loss_shape(call);
  const DType dtype = call.inputs[0].dtype;
  LossScratch scratch{to_lines(s.chunk * s.vocabulary * 4), to_lines(s.chunk * 8), 0};
  scratch.workspace = onednn_matmul_scratch({s.chunk, s.vocabulary, s.hidden}, dtype, facts);
  if (!gradient) return scratch;
  const int64_t dx = onednn_matmul_scratch({s.chunk, s.hidden, s.vocabulary}, dtype, facts);
  const MatmulSize size =
      s.out_in ? MatmulSize{s.vocabulary, s.hidden, s.chunk} : MatmulSize{s.hidden, s.vocabulary, s.chunk};
  const bool trains = call.attrs.integer("train_weight") != 0;
  const int64_t dw = trains ? onednn_matmul_scratch(size, dtype, facts) : 0;
  scratch.workspace = std::max({scratch.workspace, dx, dw});
  return scratch;
}

}  // namespace headroom
