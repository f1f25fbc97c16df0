#include "train/budget.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <string>

#include "base/bytes.h"
#include "base/error.h"
#include "base/lines.h"
#include "device/device.h"
#include "formats/file.h"
#include "planner/request.h"

namespace headroom {
namespace {

// The number that `text` begins with, behind blanks; 0 where there is none ("max").
int64_t leading_number(std::string_view text) {
  text.remove_prefix(std::min(text.size(), text.find_first_not_of(' ')));
  int64_t number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

// The smallest limit of the memory cgroups this process is in, v1 or v2; INT64_MAX when there is none.
int64_t cgroup_limit() {
  int64_t least = INT64_MAX;
  const std::string groups = read_system_file("/proc/self/cgroup");
  for (std::string_view rest = groups; !rest.empty();) {
    const std::string_view line = take_line(rest);
    const size_t first = line.find(':'), second = line.find(':', first + 1);
    if (second == std::string_view::npos) continue;
    const std::string_view controllers = line.substr(first + 1, second - first - 1);
    const bool v2 = controllers.empty();
    if (!v2 && controllers.find("memory") == std::string_view::npos) continue;
    const std::string root = v2 ? "/sys/fs/cgroup" : "/sys/fs/cgroup/memory";
    for (std::filesystem::path path = line.substr(second + 1); !path.empty(); path = path.parent_path()) {
      const char* const name = v2 ? "/memory.max" : "/memory.limit_in_bytes";
      const int64_t limit = leading_number(read_system_file(root + path.string() + name));
      if (limit > 0) least = std::min(least, limit);
      if (path == path.parent_path()) break;
    }
  }
  return least;
}

int64_t meminfo_available() {
  constexpr std::string_view kKey = "MemAvailable:";
  const std::string text = read_system_file("/proc/meminfo");
  for (std::string_view rest = text; !rest.empty();)
    if (const std::string_view line = take_line(rest); line.starts_with(kKey))
      return leading_number(line.substr(kKey.size())) * 1024;
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
