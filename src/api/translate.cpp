#include "api/translate.h"

namespace headroom::api {

std::vector<Change> changes_of(const headroom::Plan& plan) {
  std::vector<Change> changes;
  for (const Alternative& other : plan.alternatives)
    changes.push_back({other.options, other.effect, other.minimum_bytes, other.fits});
  return changes;
}

void throw_refusal(const headroom::Plan& plan) {
  const headroom::Refusal words = refusal_of(plan);
  throw Refusal(words.message, words.remedy, plan.budget_bytes, plan.minimum_bytes, changes_of(plan));
}

}  // namespace headroom::api
