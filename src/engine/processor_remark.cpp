#include "engine/processor_remark.h"

#include <strings.h>

#include <cstdlib>

#include "base/openmp_environment.h"
#include "device/device.h"
#include "engine/budget.h"

namespace headroom {
namespace {

// Whether waiting threads spin, as libgomp's do.
bool waits_spinning() {
  const char* const policy = std::getenv("OMP_WAIT_POLICY");
  const bool sleeps = (policy && ::strcasecmp(policy, "passive") == 0) || std::getenv("GOMP_SPINCOUNT");
  return openmp_set_up() && !sleeps;
}

}  // namespace

std::string processor_remark(const std::string& device, int threads) {
  if (device_kind(device) != DeviceKind::cpu) return {};
  return thread_remark(threads, processor_load(), waits_spinning());
}

}  // namespace headroom
