#include "train/other_trainings.h"

#include <fmt/format.h>

namespace headroom {

std::vector<ChangedRequest> other_trainings(const TrainOptions& options, const ModelFiles& model) {
  constexpr int64_t kRank = 16;
  std::vector<ChangedRequest> out;
  // Techniques may pin what these change.
  const bool pinned = !options.techniques.empty();
  const bool narrows = !pinned && options.precision != "bf16-true" && options.matmul_precision == "highest";
  const bool adapts = !pinned && options.lora.rank == 0 && options.freeze.empty();
  TrainOptions narrow = options, adapted = options;
  narrow.precision = "bf16-true";
  adapted.lora.rank = kRank;
  const std::string adapters = "adapters alone are trained";
  if (narrows) out.push_back({"--precision bf16-true", "weights are kept in 16 bits", training_request(narrow, model)});
  if (adapts) out.push_back({fmt::format("--lora-r {}", kRank), adapters, training_request(adapted, model)});
  if (narrows && adapts) {
    narrow.lora.rank = kRank;
    out.push_back({fmt::format("--lora-r {} --precision bf16-true", kRank),
                   adapters + ", the weights are kept in 16 bits", training_request(narrow, model)});
  }
  return out;
}

}  // namespace headroom
