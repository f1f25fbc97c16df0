#include "planner/techniques/chunked_loss.h"

#include <fmt/format.h>

#include <algorithm>

#include "passes/chunked_loss.h"
#include "planner/pipeline.h"
#include "planner/techniques/micro_batch.h"

namespace headroom::techniques {
namespace {

// For the smallest chunk that is tried: below, other values in the slot are larger than the logits.
constexpr int64_t kLeastRows = 4;
// Rows of a chunk if the arithmetic is fixed.
constexpr int64_t kFixedRows = 256;

// Ascending; 0 means all rows.
std::vector<Setting> sizes(const PlanRequest& request, const Candidate& candidate) {
  const int64_t rows = micro_batch_of(candidate) * request.seq_length;
  const std::string said = pin(request, kChunkedLoss.name);
  if (said == "off") return {{0}};
  if (const int64_t pinned = pinned_number(request, kChunkedLoss); pinned > 0) return {{std::min(pinned, rows)}};
  if (request.arithmetic_fixed) return {{kFixedRows}};
  std::vector<Setting> chunks;
  for (int64_t chunk = kLeastRows; chunk < rows && chunk <= 4096; chunk *= 2) chunks.push_back({chunk});
  if (said != "on" || chunks.empty()) chunks.push_back({rows});
  return chunks;
}

// Whether another technique of the candidate cuts the loss in its own way.
bool is_cut_otherwise(const Candidate& candidate) {
  const std::span<const Technique* const> all = all_techniques();
  return std::any_of(all.begin(), all.end(),
                     [&](const Technique* technique) { return technique->cuts_loss && candidate[*technique].taken(); });
}

Told told(const PlanRequest& request, const Candidate& chosen) {
  if (is_cut_otherwise(chosen)) return {"off", "the loss is computed for all rows, in slices of the vocabulary"};
  const int64_t rows = micro_batch_of(chosen) * request.seq_length, chunk = loss_chunk_of(chosen);
  if (chunk == 0 || chunk >= rows) return {"off", fmt::format("logits of all {} rows fit", rows)};
  return {std::to_string(chunk), fmt::format("{} rows of logits at a time instead of {}", chunk, rows),
          chosen.without(chunked_loss)};
}

}  // namespace

constinit const Technique chunked_loss{
    .info = &kChunkedLoss,
    .usual = "256",
    .ladder = {2},
    .check =
        [](const PlanRequest&, const std::string& setting) {
          check_setting(kChunkedLoss, setting, {"on", "off"}, true);
        },
    .choices = [](const PlanRequest& request, const Candidate& decided) -> std::vector<Setting> {
      return {sizes(request, decided).front()};
    },
    .same_graph = sizes,
    .in_graph = [](const PlanRequest&, const Candidate&) { return Setting{}; },
    .runs_always = true,
    .pass = [](Graph& graph, const PlanRequest&,
               const Candidate& candidate) { set_loss_chunk(graph, loss_chunk_of(candidate)); },
    .told = told,
    .phrase =
        [](const Setting& setting) {
          return setting.taken() ? fmt::format("loss chunk {}", setting.count) : std::string();
        },
    .record = [](const PlanRequest&, const Candidate& chosen,
                 Choices& out) { out.set("loss_chunk_rows", loss_chunk_of(chosen)); },
    .as_pin = [](const Setting& setting) { return setting.count == 0 ? "off" : std::to_string(setting.count); },
};

}  // namespace headroom::techniques

namespace headroom {

std::vector<int64_t> loss_chunks(const PlanRequest& request, const Candidate& candidate) {
  if (techniques::is_cut_otherwise(candidate)) return {0};
  std::vector<int64_t> out;
  for (const Setting& setting : techniques::chunked_loss.same_graph(request, candidate)) out.push_back(setting.count);
  return out;
}

}  // namespace headroom
