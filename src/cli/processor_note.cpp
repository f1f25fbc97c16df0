#include "cli/processor_note.h"

#include <strings.h>

#include <cstdlib>

#include "cli/messages.h"
#include "train/budget.h"

namespace headroom {
namespace {

// Waiting threads of the OpenMP library sleep instead of spinning.
bool waits_passively() {
  const char* const policy = std::getenv("OMP_WAIT_POLICY");
  return (policy && ::strcasecmp(policy, "passive") == 0) || std::getenv("GOMP_SPINCOUNT");
}

}  // namespace

void note_processors(const std::string& device, int threads) {
  if (device != "cpu") return;
  const ProcessorLoad load = processor_load();
  const std::string remark = thread_remark(threads > 0 ? threads : load.allowed, load, waits_passively());
  if (!remark.empty()) print_note(remark);
}

}  // namespace headroom
