#include "data/row_targets.h"

#include <algorithm>
#include <utility>

#include "base/counter_random.h"
#include "base/error.h"

namespace headroom {

RowTargets::RowTargets(int32_t pad_id, bool class_at_end, Masking masking, RowLimits limits)
    : pad_id_(pad_id), class_at_end_(class_at_end), masking_(std::move(masking)), limits_(limits) {
  HR_CHECK(pad_id >= 0 && masking_.probability >= 0 && masking_.probability <= 1, "padding {}, masked with {}", pad_id,
           masking_.probability);
  HR_CHECK(masking_.mask_id < masking_.vocab_size || masking_.mask_id < 0, "mask token {} of {}", masking_.mask_id,
           masking_.vocab_size);
  HR_CHECK(std::is_sorted(masking_.unmasked.begin(), masking_.unmasked.end()), "special tokens are not sorted");
}

int64_t RowTargets::place(int64_t sample, const SequenceInfo& info, std::span<int32_t> ids,
                          std::span<int32_t> labels) const {
  HR_CHECK(static_cast<int64_t>(ids.size()) == info.length && labels.size() == ids.size(),
           "a sequence of {} in {} ids and {} labels", info.length, ids.size(), labels.size());
  if (info.class_label >= 0) {
    (class_at_end_ ? labels.back() : labels.front()) = info.class_label;
    return 1;
  }
  return info.unmasked ? mask(sample, ids, labels) : info.targets;
}

bool RowTargets::takes(std::span<const int32_t> ids, std::span<const int32_t> labels) const {
  return std::ranges::all_of(ids, [&](int32_t id) { return id >= 0 && id < limits_.ids; }) &&
         std::ranges::all_of(
             labels, [&](int32_t label) { return label == kIgnoredLabel || (label >= 0 && label < limits_.labels); });
}

int64_t RowTargets::mask(int64_t sample, std::span<int32_t> ids, std::span<int32_t> labels) const {
  HR_CHECK(masking_.mask_id >= 0, "a sequence to be masked, and no mask token");
  const uint64_t key = mix64(mix64(masking_.seed) + static_cast<uint64_t>(sample));
  int64_t targets = 0;
  for (size_t t = 0; t < ids.size(); ++t) {
    const uint64_t draw = mix64(key + t);
    const bool special = std::binary_search(masking_.unmasked.begin(), masking_.unmasked.end(), ids[t]);
    if (special || unit_interval(draw) >= masking_.probability) {
      labels[t] = kIgnoredLabel;
      continue;
    }
    ++targets;
    const double kind = unit_interval(mix64(draw ^ 1));
    if (kind < 0.8) {
      ids[t] = masking_.mask_id;
    } else if (kind < 0.9) {
      const auto random = static_cast<int32_t>(mix64(draw ^ 2) % static_cast<uint64_t>(masking_.vocab_size));
      ids[t] = random == pad_id_ ? masking_.mask_id : random;
    }
  }
  return targets;
}

}  // namespace headroom
