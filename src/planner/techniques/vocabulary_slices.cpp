#include "passes/vocabulary_slices.h"

#include <fmt/format.h>

#include "passes/update_slices.h"
#include "planner/techniques/chunked_loss.h"
#include "planner/techniques/length_buckets.h"
#include "planner/techniques/offload.h"
#include "planner/techniques/recompute.h"

namespace headroom::techniques {

namespace {

// Per slice, at each length: five calls of the step and two of evaluation, and the copies of their windows.
constexpr int64_t kSliceBytes = 48 * 1024;
// Products of the slices' shapes.
constexpr int64_t kKernelBytes = 3 << 20;

Verdict verdict(const PlanRequest& request) {
  if (!request.facts.is_cpu()) return {"is for the CPU: a GPU's memory holds a head", "leave it out"};
  if (sliced_head(request.forward).slices < 2)
    return {"needs a head larger than every matrix of a layer, stored with a row for each entry and without a bias",
            "leave it out"};
  return needs_lower_tier(request);
}

// Whether what the loss keeps on the device could be the most: the head, its gradient if it is trained, against about
// eight tensors of a row's width that attention and its gradient hold.
bool is_worth_planning(const PlanRequest& request) {
  constexpr int64_t kOfAttention = 8;
  const SlicedHead head = sliced_head(request.forward);
  const int64_t matrices = weights_are(request, WeightForm::adapted) ? 1 : 2;
  return matrices * head.entries > kOfAttention * request.seq_length;
}

std::vector<Setting> choices(const PlanRequest& request, const Candidate& decided) {
  if (asked_for(request, kVocabularySlices)) return {Setting{1}};
  std::vector<Setting> out{{}};
  if (pin(request, kVocabularySlices.name).empty() && !request.arithmetic_fixed && offloads(decided) &&
      is_frugal(decided) && verdict(request).why_not.empty() && is_worth_planning(request))
    out.push_back({1});
  return out;
}

Told told(const PlanRequest& request, const Candidate& chosen) {
  const bool taken = chosen[vocabulary_slices].taken();
  if (const std::string why_not = verdict(request).why_not; !taken && !why_not.empty()) return {"off", why_not};
  if (!taken)
    return {"off", is_frugal(chosen) ? "the whole head fits" : "tried when the lower tiers have all they can hold"};
  Told out{"on", fmt::format("{} slices of the head", sliced_head(request.forward).slices)};
  out.without = chosen.without(vocabulary_slices);
  set_loss_chunk_of(*out.without, loss_chunks(request, *out.without).front());
  return out;
}

int64_t process_bytes(const PlanRequest& request, const Candidate& candidate) {
  if (!candidate[vocabulary_slices].taken()) return 0;
  return lengths_of(request) * sliced_head(request.forward).slices * kSliceBytes + kKernelBytes;
}

}  // namespace

constinit const Technique vocabulary_slices{
    .info = &kVocabularySlices,
    .check = check_switch<kVocabularySlices>,
    .verdict = verdict,
    .choices = choices,
    .layers_add_up = false,
    .cuts_loss = true,
    .pass = [](Graph& graph, const PlanRequest&, const Candidate&) { slice_vocabulary(graph, slice_bytes(graph)); },
    .process_bytes = process_bytes,
    .told = told,
    .phrase =
        [](const Setting& setting) { return setting.taken() ? std::string("vocabulary in slices") : std::string(); },
    .record =
        [](const PlanRequest&, const Candidate& chosen, Choices& out) {
          if (chosen[vocabulary_slices].taken()) out.set("vocabulary_slices", chosen[vocabulary_slices].count);
        },
    .as_pin = [](const Setting& setting) { return std::string(setting.taken() ? "on" : "off"); },
};

}  // namespace headroom::techniques
