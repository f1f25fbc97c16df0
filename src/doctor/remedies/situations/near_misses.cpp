// Requests for which nearly enough is free.
#include <fmt/format.h>

#include "doctor/remedies/figures.h"
#include "doctor/remedies/program_words.h"
#include "doctor/remedies/situations/conditions.h"
#include "doctor/remedies/situations/situation.h"

namespace headroom::doctor {
namespace {

bool by_the_allocator(const CaseView& view) {
  return on_device(view) && view.caching_allocator() && !view.serving() && view.message() &&
         view.message()->format.starts_with("torch2") && windows_word(view.incident().log_text).empty();
}

// The message is cut off before it says what lies unused: of a large request the allocator holds more than is missing,
// as a rule.
Evidence nearly_free(const CaseView& view) {
  constexpr int64_t kLarge = int64_t{512} << 20;
  const MessageFigures& f = view.figures();
  if (!f.requested || !f.free || f.unallocated || *f.requested < kLarge) return {};
  if (*f.free >= *f.requested || *f.free < *f.requested * 85 / 100) return {};
  return {0.81, fmt::format("{} asked in one piece, {} free", figure(*f.requested), figure(*f.free))};
}

constexpr Situation kSituations[] = {
    {"large_request_just_missed",
     "nearly enough is free for one large request: what the allocator keeps in pieces may be all that is missing",
     by_the_allocator,
     {},
     {{"expandable-segments"}},
     nearly_free},
};

}  // namespace

std::span<const Situation> near_miss_situations() { return kSituations; }

}  // namespace headroom::doctor
