#include "engine/other_trainings.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "base/error.h"
#include "engine/training_request.h"
#include "passes/precisions.h"
#include "planner/pipeline.h"

namespace headroom {
namespace {

// Weights in 16 bits with fp32's range.
constexpr const Precision& kNarrow =
    *std::find_if(std::begin(kPrecisions), std::end(kPrecisions),
                  [](const Precision& precision) { return !precision.keeps_fp32 && !precision.scales_loss(); });

// The usual rank of adapters.
int64_t usual_rank() {
  const Technique* const adapters = technique_set_by("--lora-r");
  HR_CHECK(adapters, "no technique has --lora-r");
  int64_t rank = 0;
  std::from_chars(adapters->usual.data(), adapters->usual.data() + adapters->usual.size(), rank);
  return rank;
}

}  // namespace

std::vector<ChangedRequest> other_trainings(const TrainOptions& options, const ModelFiles& model) {
  const int64_t rank = usual_rank();
  std::vector<ChangedRequest> out;
  // Options that techniques may already pin.
  const bool pinned = !options.techniques.pins.empty();
  const Precision* const precision = find_precision(options.techniques.precision);
  const bool narrows =
      !pinned && (!precision || precision->keeps_fp32) && options.techniques.matmul_precision == "highest";
  const bool adapts = !pinned && options.techniques.lora.rank == 0 && options.techniques.freeze.empty();
  TrainOptions narrow = options, adapted = options;
  narrow.techniques.precision = kNarrow.word;
  adapted.techniques.lora.rank = rank;
  const std::string adapters = "adapters alone are trained", in_16_bits = fmt::format("--precision {}", kNarrow.word);
  if (narrows) out.push_back({in_16_bits, "weights are kept in 16 bits", training_request(narrow, model)});
  if (adapts) out.push_back({fmt::format("--lora-r {}", rank), adapters, training_request(adapted, model)});
  if (narrows && adapts) {
    narrow.techniques.lora.rank = rank;
    out.push_back({fmt::format("--lora-r {} {}", rank, in_16_bits), adapters + ", the weights are kept in 16 bits",
                   training_request(narrow, model)});
  }
  return out;
}

}  // namespace headroom
