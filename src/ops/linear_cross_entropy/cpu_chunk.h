// Implementations of the loss of one chunk of rows, and for the gradient op of its gradient.
#pragma once

#include <string>

#include "ops/cpu/kernel.h"
#include "ops/cpu/matmul.h"
#include "ops/linear_cross_entropy/cpu_softmax.h"
#include "ops/linear_cross_entropy/loss_options.h"
#include "ops/linear_cross_entropy/shape.h"

namespace headroom {

struct LossChunk {
  int64_t first = 0;  // row
  int64_t rows = 0;
  Targets targets;
  bool overwrite = false;  // the weight's accumulator
};

struct LossSums {
  double loss = 0, hits = 0;
};

// The op's accumulator: sets or adds the losses, the number of targets, and with `hits` of those that have the largest
// logit.
void add_sums(double* sums, const LossSums& found, int64_t counted, bool hits, bool adds);

class ChunkLoss {
 public:
  virtual ~ChunkLoss() = default;
  // Writes the chunk's rows of dx and adds to the accumulators of weight and bias. At least one row has a target.
  virtual LossSums run(const KernelCall& call, const LossChunk& chunk) const = 0;
};

struct ChunkLossOffer {
  std::unique_ptr<ChunkLoss> loss;
  int64_t chunk = 0;  // rows at a time
  std::string refusal;
};

// Three products and a softmax over the chunk's logits. Takes fewer rows at a time if less scratch is booked than a
// chunk of logits needs.
ChunkLossOffer make_product_loss(const KernelSpec& spec, const DeviceFacts& facts, MatmulMaker make,
                                 SoftmaxLoss softmax);
// Slice by slice of the vocabulary for many rows, in the scratch of a chunk of few.
ChunkLossOffer make_sliced_loss(const KernelSpec& spec, const DeviceFacts& facts, MatmulMaker make);
// On AMX tiles, without the chunk's logits.
ChunkLossOffer make_tiled_loss(const KernelSpec& spec, const DeviceFacts& facts);

// The accumulator of the bias's gradient, which is the last output.
inline float* bias_sums(const KernelCall& call) { return call.outputs.back().as<float>(); }

// Row `row` of a dense tensor of rows of `width` elements.
inline std::byte* row_of(const TensorView& tensor, int64_t row, int64_t width) {
  return static_cast<std::byte*>(tensor.data) + row * width * dtype_bytes(tensor.dtype);
}

// Throws InternalError if the target of a row is not an entry of the vocabulary.
void require_label(int32_t target, int64_t row, int64_t sequence, bool shift, int64_t vocabulary);

// Adds the gradients of the logits to the bias's, row by row; `sums`: of the first of the rows' entries.
void add_columns(const LossRows& rows, float* sums);

}  // namespace headroom
