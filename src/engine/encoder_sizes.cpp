#include "engine/encoder_sizes.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "models/serving.h"
#include "planner/serving.h"

namespace headroom {
namespace {

void check(const ServingOptions& asked, const ModelSpec& spec) {
  if (asked.admission == "balanced" || asked.park_memory)
    throw Error(ErrorKind::usage, fmt::format("--admission balanced does not apply to {}", spec.architecture),
                "leave it out: an encoder generates no tokens, and its sequences end with their step");
  if (asked.lora.wanted())
    throw Error(ErrorKind::usage, fmt::format("adapter slots for {} are not built in this version", spec.architecture),
                "merge the adapter into the model: headroom merge");
  if (asked.max_num_batched_tokens && asked.max_model_len && *asked.max_num_batched_tokens < *asked.max_model_len)
    throw Error(ErrorKind::usage,
                fmt::format("--max-num-batched-tokens {} is below --max-model-len {}, and an encoder reads a whole "
                            "sequence in one step",
                            *asked.max_num_batched_tokens, *asked.max_model_len),
                "give at least as many tokens, or a smaller --max-model-len");
}

// What is not asked for: `positions` long sequences, steps of `rows` tokens, as many sequences as usual.
ServingOptions sized(const ServingOptions& asked, int64_t positions, int64_t rows) {
  ServingOptions sizes = asked;
  sizes.max_model_len = positions;
  sizes.max_num_batched_tokens = rows;
  if (!sizes.max_num_seqs) sizes.max_num_seqs = std::min(kServedSequences, rows);
  return sizes;
}

}  // namespace

std::vector<ServingOptions> encoder_sizes(const ServingOptions& asked, const ModelSpec& spec) {
  check(asked, spec);
  const std::optional<int64_t>& given_rows = asked.max_num_batched_tokens;
  int64_t positions =
      asked.max_model_len.value_or(std::min(spec.max_positions, given_rows.value_or(spec.max_positions)));
  const auto least_rows = [&] { return std::max(positions, asked.max_num_seqs.value_or(1)); };
  int64_t rows = given_rows.value_or(std::max(least_rows(), kServedRows));
  std::vector<ServingOptions> sizes{sized(asked, positions, rows)};
  while (!given_rows && rows > least_rows()) {
    rows = std::max(least_rows(), rows / 2);
    sizes.push_back(sized(asked, positions, rows));
  }
  while (!asked.max_model_len && positions > kLeastPositions) {
    positions = std::max(kLeastPositions, positions / 2);
    sizes.push_back(sized(asked, positions, given_rows.value_or(least_rows())));
  }
  return sizes;
}

}  // namespace headroom
