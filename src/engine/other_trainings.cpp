#include "engine/other_trainings.h"
#include "engine/training_request.h"

#include <fmt/format.h>

#include "passes/precisions.h"

namespace headroom {

std::vector<ChangedRequest> other_trainings(const TrainOptions& options, const ModelFiles& model) {
  constexpr int64_t kRank = 16;
  std::vector<ChangedRequest> out;
  // Options that techniques may already pin.
  const bool pinned = !options.techniques.pins.empty();
  const Precision* const precision = find_precision(options.techniques.precision);
  const bool narrows =
      !pinned && (!precision || precision->keeps_fp32) && options.techniques.matmul_precision == "highest";
  const bool adapts = !pinned && options.techniques.lora.rank == 0 && options.techniques.freeze.empty();
  TrainOptions narrow = options, adapted = options;
  narrow.techniques.precision = "bf16-true";
  adapted.techniques.lora.rank = kRank;
  const std::string adapters = "adapters alone are trained";
  if (narrows) out.push_back({"--precision bf16-true", "weights are kept in 16 bits", training_request(narrow, model)});
  if (adapts) out.push_back({fmt::format("--lora-r {}", kRank), adapters, training_request(adapted, model)});
  if (narrows && adapts) {
    narrow.techniques.lora.rank = kRank;
    out.push_back({fmt::format("--lora-r {} --precision bf16-true", kRank),
                   adapters + ", the weights are kept in 16 bits", training_request(narrow, model)});
  }
  return out;
}

}  // namespace headroom
