// Routings for tests: rows and offsets as the router makes them, from the experts of each pair.
#pragma once

#include <vector>

#include "../ops_stream/stream_support.h"

namespace headroom::op_test {

struct Routing {
  int64_t tokens = 0, chosen = 0, experts = 0;
  std::vector<int64_t> expert_of_row;
  Tensor rows, offsets;
};

// `expert_of` is [tokens][chosen].
inline Routing routing_of(const std::vector<std::vector<int64_t>>& expert_of, int64_t experts) {
  const auto tokens = static_cast<int64_t>(expert_of.size()), chosen = static_cast<int64_t>(expert_of[0].size());
  Routing routing{
      tokens, chosen, experts, {}, Tensor(DType::i32, {1, tokens, chosen}), Tensor(DType::i32, {experts + 1})};
  for (int64_t e = 0; e < experts; ++e) {
    routing.offsets.set(e, static_cast<double>(routing.expert_of_row.size()));
    for (int64_t token = 0; token < tokens; ++token)
      for (int64_t slot = 0; slot < chosen; ++slot) {
        if (expert_of[static_cast<size_t>(token)][static_cast<size_t>(slot)] != e) continue;
        routing.rows.set(token * chosen + slot, static_cast<double>(routing.expert_of_row.size()));
        routing.expert_of_row.push_back(e);
      }
  }
  routing.offsets.set(experts, static_cast<double>(routing.expert_of_row.size()));
  return routing;
}

// Token t goes to experts (a t + b slot) mod experts, all different; the last expert gets none when experts > chosen.
inline Routing spread_routing(int64_t tokens, int64_t chosen, int64_t experts) {
  const int64_t used = experts > chosen ? experts - 1 : experts;
  std::vector<std::vector<int64_t>> expert_of;
  for (int64_t t = 0; t < tokens; ++t) {
    expert_of.emplace_back();
    for (int64_t slot = 0; slot < chosen; ++slot) expert_of.back().push_back((t * t + 3 * (t / 2) + slot) % used);
  }
  return routing_of(expert_of, experts);
}

// Every token goes to the last `chosen` experts: the others get none.
inline Routing skewed_routing(int64_t tokens, int64_t chosen, int64_t experts) {
  std::vector<int64_t> last;
  for (int64_t slot = 0; slot < chosen; ++slot) last.push_back(experts - 1 - slot);
  return routing_of(std::vector<std::vector<int64_t>>(static_cast<size_t>(tokens), last), experts);
}

}  // namespace headroom::op_test
