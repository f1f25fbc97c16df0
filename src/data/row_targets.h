// The targets of a batch's row, made from a sequence of the cache: the labels of its positions, and masked tokens.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "data/token_cache.h"

namespace headroom {

// Masked language modelling (Devlin et al. 2019): of the tokens that may be masked each is a target with `probability`;
// 80 % of these become the mask token, 10 % a random token, 10 % stay.
struct Masking {
  double probability = 0.15;
  uint64_t seed = 0;
  int32_t mask_id = -1;           // -1: there is none, and every sequence has explicit labels
  int64_t vocab_size = 0;         // random tokens are below
  std::vector<int32_t> unmasked;  // sorted ids that are never masked: special tokens
};

// Limits of a model: ids and labels are below these.
struct RowLimits {
  int64_t ids = int64_t{1} << 31;     // its vocabulary
  int64_t labels = int64_t{1} << 31;  // its vocabulary or classes
};

// Const and thread-safe. No heap allocation after construction.
class RowTargets {
 public:
  // Rows as the cache holds them, padded with id 0.
  RowTargets() = default;
  // Rows are padded with `pad_id`, which masking never inserts. A class is at the first position of its row, or at the
  // last of the sequence.
  RowTargets(int32_t pad_id, bool class_at_end, Masking masking, RowLimits limits = {});

  int32_t pad_id() const { return pad_id_; }

  // Turns the ids and labels of a sequence (spans of its length), as read from the cache, into those of the row of
  // global sample `sample`, which depend only on the arguments and the seed. Returns its targets.
  int64_t place(int64_t sample, const SequenceInfo& info, std::span<int32_t> ids, std::span<int32_t> labels) const;

  // True if the ids and labels of a row are within the model's limits, so that no device reads outside a table.
  bool takes(std::span<const int32_t> ids, std::span<const int32_t> labels) const;

 private:
  int64_t mask(int64_t sample, std::span<int32_t> ids, std::span<int32_t> labels) const;

  int32_t pad_id_ = 0;
  bool class_at_end_ = false;
  Masking masking_;
  RowLimits limits_;
};

}  // namespace headroom
