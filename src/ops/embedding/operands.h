// The places of the operands of the embedding and of its gradient.
#pragma once

namespace headroom {

struct EmbeddingInputs {
  enum : int { ids, table, onto };
};
struct EmbeddingGradInputs {
  enum : int { ids, dy, accumulator };
};

}  // namespace headroom
