#include "train/budget.h"

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "base/bytes.h"
#include "base/error.h"
#include "device/device.h"
#include "planner/request.h"

namespace headroom {
namespace {

// The smallest limit of the memory cgroups this process is in, v1 or v2; INT64_MAX when there is none.
int64_t cgroup_limit() {
  int64_t least = INT64_MAX;
  std::ifstream groups("/proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {
    const size_t first = line.find(':'), second = line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const bool v2 = controllers.empty();
    if (!v2 && controllers.find("memory") == std::string::npos) continue;
    const std::string root = v2 ? "/sys/fs/cgroup" : "/sys/fs/cgroup/memory";
    for (std::filesystem::path path = line.substr(second + 1); !path.empty(); path = path.parent_path()) {
      std::ifstream file(root + path.string() + (v2 ? "/memory.max" : "/memory.limit_in_bytes"));
      int64_t limit = 0;
      if (file >> limit && limit > 0) least = std::min(least, limit);
      if (path == path.parent_path()) break;
    }
  }
  return least;
}

int64_t meminfo_available() {
  std::ifstream file("/proc/meminfo");
  std::string key;
  for (int64_t kib = 0; file >> key;) {
    if (key == "MemAvailable:" && file >> kib) return kib * 1024;
  }
  return INT64_MAX;
}

}  // namespace

int64_t available_memory() { return std::min(cgroup_limit(), meminfo_available()); }

void refuse_above_machine(std::string_view option, int64_t budget) {
  constexpr int64_t kPage = 4096;
  const int64_t available = available_memory();
  if (budget / kPage <= available / kPage) return;
  throw Error(ErrorKind::does_not_fit,
              fmt::format("{} {} bytes ({}) is above the {} bytes ({}) that this machine or container can give", option,
                          budget, format_bytes(budget), available, format_bytes(available)),
              "give a smaller budget, or --force");
}

int64_t default_budget(const std::string& device, const std::string& profile) {
  if (const std::optional<int> gpu = cuda_index(device)) return cuda_memory(*gpu).free_bytes;
  const bool planned_only = device == "null" && !profile.empty();
  const int64_t described = planned_only ? load_profile(profile).memory_bytes : 0;
  return described > 0 ? described / 20 * 19 : available_memory() / 10 * 9;
}

int64_t default_host_budget(const std::string& device) { return cuda_index(device) ? available_memory() / 10 * 9 : 0; }

}  // namespace headroom
