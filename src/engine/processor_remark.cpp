#include "cli/processor_note.h"

#include <strings.h>

#include <cstdlib>

#include "base/openmp_environment.h"
#include "cli/messages.h"
#include "train/budget.h"

namespace headroom {
namespace {

// Whether waiting threads are libgomp's and spin.
bool waits_spinning() {
  const char* const policy = std::getenv("OMP_WAIT_POLICY");
  const bool sleeps = (policy && ::strcasecmp(policy, "passive") == 0) || std::getenv("GOMP_SPINCOUNT");
  return openmp_set_up() && !sleeps;
}

}  // namespace

void note_processors(const std::string& device, int threads) {
  if (device != "cpu") return;
  const ProcessorLoad load = processor_load();
  const std::string remark = thread_remark(threads, load, waits_spinning());
  if (!remark.empty()) print_note(remark);
}

}  // namespace headroom
