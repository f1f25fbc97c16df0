#include "passes/sequence_chunks.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "planner/pipeline.h"
#include "planner/techniques/length_buckets.h"
#include "planner/techniques/offload.h"
#include "planner/techniques/recompute.h"

namespace headroom::techniques {

namespace {

constexpr int64_t kLeastRows = 128;  // of the smallest part that the planner tries
// Per layer and part, and half as much for each further length: about 40 instructions of the step and evaluation, with
// adapters twice as many.
constexpr int64_t kPartBytes = 64 * 1024;
constexpr int64_t kAdapterPartBytes = 128 * 1024;
// Products of the parts' shapes.
constexpr int64_t kKernelBytes = 3 << 20;

void check(const PlanRequest& request, const std::string& setting) {
  check_setting(kSequenceChunks, setting, {"on", "off"}, true);
  if (setting == "on" || setting == "off" || request.seq_length == 0) return;
  const int64_t most = most_sequence_chunks(request.seq_length);
  if (setting.size() > 6 || std::stoll(setting) > most)
    throw Error(
        ErrorKind::usage,
        fmt::format("--technique sequence-chunks={} is too many parts for {} tokens", setting, request.seq_length),
        fmt::format("at most {}", most));
}

// Whether the loss is cut as far as it may be, which costs less.
bool cuts_loss(const PlanRequest& request, const Candidate& decided) {
  const std::span<const Technique* const> all = all_techniques();
  return std::all_of(all.begin(), all.end(), [&](const Technique* technique) {
    return !technique->cuts_loss || technique->choices(request, decided).back() == decided[*technique];
  });
}

std::vector<Setting> choices(const PlanRequest& request, const Candidate& decided) {
  const std::string said = pin(request, kSequenceChunks.name);
  if (said == "off") return {Setting{}};
  const int64_t most = most_sequence_chunks(request.seq_length);
  if (const int64_t pinned = pinned_number(request, kSequenceChunks); pinned > 0)
    return {Setting{std::min(pinned, most)}};
  std::vector<Setting> out;
  if (said != "on") out.push_back({});
  if (said != "on" && (request.arithmetic_fixed || !is_frugal(decided) || !cuts_loss(request, decided))) return out;
  for (const int64_t parts : {4, 8})
    if (parts <= most && request.seq_length / parts >= kLeastRows) out.push_back({parts});
  if (out.empty()) out.push_back({std::min<int64_t>(2, most)});
  return out;
}

Told told(const PlanRequest& request, const Candidate& chosen) {
  if (!chosen[sequence_chunks].taken())
    return {"off", is_frugal(chosen) ? "layers fit for whole sequences"
                                     : "tried when micro-batch 1 and recomputation are not enough"};
  return {std::to_string(chosen[sequence_chunks].count), "parts that each sequence is computed in",
          chosen.without(sequence_chunks)};
}

int64_t process_bytes(const PlanRequest& request, const Candidate& candidate) {
  const int64_t parts = candidate[sequence_chunks].count;
  if (parts < 2) return 0;
  const int64_t layer = weights_are(request, WeightForm::adapted) ? kAdapterPartBytes : kPartBytes;
  return (lengths_of(request) + 1) * (parts * block_count(request.forward) * layer + kKernelBytes) / 2;
}

}  // namespace

constinit const Technique sequence_chunks{
    .info = &kSequenceChunks,
    .usual = "4",
    .ladder = {3},
    .check = check,
    .choices = choices,
    .layers_add_up = false,
    .pass = [](Graph& graph, const PlanRequest&,
               const Candidate& candidate) { chunk_sequences(graph, candidate[sequence_chunks].count); },
    .process_bytes = process_bytes,
    .told = told,
    .phrase =
        [](const Setting& setting) {
          return setting.taken() ? fmt::format("sequence in {} parts", setting.count) : std::string();
        },
    .record = [](const PlanRequest&, const Candidate& chosen,
                 Choices& out) { out.set("sequence_chunks", chosen[sequence_chunks].count); },
    .as_pin = [](const Setting& setting) { return setting.taken() ? std::to_string(setting.count) : "off"; },
};

}  // namespace headroom::techniques
