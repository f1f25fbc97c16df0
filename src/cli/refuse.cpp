#include "cli/refuse.h"

#include "cli/messages.h"
#include "engine/refusal.h"

namespace headroom {

int refuse(const Plan& plan) {
  const Refusal refusal = refusal_of(plan);
  print_error(refusal.message, refusal.remedy);
  return 3;
}

}  // namespace headroom
