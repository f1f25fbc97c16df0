// A sequence in the scheduler: its request and its progress.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "generate/block_store.h"
#include "generate/scheduler.h"

namespace headroom {

struct Sequence {
  SequenceId id = 0;
  SequenceRequest request;  // its prompt moves to `tokens`
  std::vector<int32_t> tokens;
  int64_t prompt = 0;  // how many of `tokens` are the prompt's
  int64_t drawn = 0;   // sampled tokens, including one that ended the text
  int64_t passes = 0;  // how often others were admitted while it was first but did not fit

  SequenceBlocks blocks;
  int64_t filled = 0;  // tokens whose keys and values are in the pool
  int64_t cached = 0;  // tokens that the index had at the beginning
  int64_t chunk = 0;   // tokens of this step
  uint64_t age = 0;    // by its admission, from 1, the oldest
  int64_t parks = 0;   // how often it was parked
  bool ended = false;

  bool scoring = false;  // the prompt's log-probabilities have not been reported yet
  std::vector<SequenceToken> scores;
  std::vector<double> pooled;  // if pooling is requested: the sum of the states so far

  bool draws() const { return request.max_tokens > 0; }
  bool pools() const { return request.pooling != Pooling::none; }
  // Whether every row of the prompt is requested: none may come from the index, and a chunk has at most as many rows as
  // logits.
  bool wants_all() const { return request.prompt_logprobs || request.pooling == Pooling::mean; }
  // Tokens that the model must read before the next token is sampled; for a prompt that is only scored, without the
  // last one.
  int64_t left() const {
    const int64_t all = draws() || pools() ? static_cast<int64_t>(tokens.size()) : prompt - 1;
    return std::max<int64_t>(all - filled, 0);
  }
  // Positions of the pool that it may fill: the last sampled token is never read by the model.
  int64_t most_filled() const { return most_filled(prompt, request); }
  static int64_t most_filled(int64_t prompt, const SequenceRequest& request) {
    return prompt + request.max_tokens - (request.pooling == Pooling::none ? 1 : 0);
  }
  // Whether the logits of the row at `position` are requested.
  bool wants(int64_t position) const {
    if (request.pooling == Pooling::first) return position == 0;
    return (request.prompt_logprobs && position < prompt - 1) || request.pooling == Pooling::mean ||
           ((draws() || pools()) && position + 1 == static_cast<int64_t>(tokens.size()));
  }
};

}  // namespace headroom
