#include "engine/budget.h"

#include <sched.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "base/bytes.h"
#include "base/error.h"
#include "base/least_bytes.h"
#include "base/lines.h"
#include "device/device.h"
#include "formats/file.h"
#include "planner/request.h"

namespace headroom {
namespace {

// The number that `text` begins with, after blanks; 0 if there is none ("max").
int64_t leading_number(std::string_view text) {
  text.remove_prefix(std::min(text.size(), text.find_first_not_of(' ')));
  int64_t number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

struct Cgroup {
  std::string folder;
  bool v2;
};

// The cgroups with a controller that contain this process, its own first.
std::vector<Cgroup> cgroups_with(std::string_view controller) {
  std::vector<Cgroup> out;
  const std::string groups = read_system_file("/proc/self/cgroup");
  for (std::string_view rest = groups; !rest.empty();) {
    const std::string_view line = take_line(rest);
    const size_t first = line.find(':'), second = line.find(':', first + 1);
    if (second == std::string_view::npos) continue;
    const std::string controllers = fmt::format(",{},", line.substr(first + 1, second - first - 1));
    const bool v2 = controllers == ",,";
    if (!v2 && controllers.find(fmt::format(",{},", controller)) == std::string::npos) continue;
    const std::string root = v2 ? "/sys/fs/cgroup" : fmt::format("/sys/fs/cgroup/{}", controller);
    for (std::filesystem::path path = line.substr(second + 1); !path.empty(); path = path.parent_path()) {
      out.push_back({root + path.string(), v2});
      if (path == path.parent_path()) break;
    }
  }
  return out;
}

// The smallest limit of the memory cgroups that contain this process, v1 or v2; INT64_MAX if there is none.
int64_t cgroup_limit() {
  int64_t least = INT64_MAX;
  for (const Cgroup& group : cgroups_with("memory")) {
    const char* const name = group.v2 ? "/memory.max" : "/memory.limit_in_bytes";
    const int64_t limit = leading_number(read_system_file(group.folder + name));
    if (limit > 0) least = std::min(least, limit);
  }
  return least;
}

// The number of CPUs in the cgroups' quotas, rounded up; INT32_MAX if there is none.
int cgroup_processors() {
  int least = INT32_MAX;
  for (const Cgroup& group : cgroups_with("cpu")) {
    std::string quota, period;
    if (group.v2) {  // "max 100000" or "150000 100000"
      quota = read_system_file(group.folder + "/cpu.max");
      if (const size_t blank = quota.find(' '); blank != std::string::npos) period = quota.substr(blank);
    } else {
      quota = read_system_file(group.folder + "/cpu.cfs_quota_us");
      period = read_system_file(group.folder + "/cpu.cfs_period_us");
    }
    const int64_t q = leading_number(quota), p = leading_number(period);
    if (q > 0 && p > 0) least = static_cast<int>(std::min<int64_t>(least, (q + p - 1) / p));
  }
  return least;
}

int online_processors() { return static_cast<int>(std::max(1u, std::thread::hardware_concurrency())); }

int64_t meminfo_available() {
  constexpr std::string_view kKey = "MemAvailable:";
  const std::string text = read_system_file("/proc/meminfo");
  for (std::string_view rest = text; !rest.empty();)
    if (const std::string_view line = take_line(rest); line.starts_with(kKey))
      return leading_number(line.substr(kKey.size())) * 1024;
  return INT64_MAX;
}

}  // namespace

int available_threads() {
  cpu_set_t set;
  const bool known = ::sched_getaffinity(0, sizeof set, &set) == 0;  // fails beyond 1024 CPUs
  return std::max(1, std::min(known ? CPU_COUNT(&set) : online_processors(), cgroup_processors()));
}

ProcessorLoad processor_load() {
  ProcessorLoad load{available_threads(), online_processors(), 0};
  double minute = 0;
  int running = 0;  // this process is one of them
  if (std::sscanf(read_system_file("/proc/loadavg").c_str(), "%lf %*f %*f %d/", &minute, &running) == 2)
    load.wanted = std::max(0.0, std::min(minute, static_cast<double>(running - 1)));
  return load;
}

std::string thread_remark(int threads, const ProcessorLoad& load, bool spinning) {
  if (threads > load.allowed)
    return fmt::format(
        "note: {} threads share the {} CPU{} that this process may use and wait for each other: give "
        "--threads {}",
        threads, load.allowed, load.allowed == 1 ? "" : "s", load.allowed);
  if (threads + load.wanted < load.machine + 0.75) return {};
  return fmt::format("note: other programs keep {:.0f} of {} CPUs busy, which makes steps longer by that share{}",
                     std::min<double>(load.machine, load.wanted), load.machine,
                     spinning && threads > 1 ? ", and by far more because threads spin while they wait: unset the OMP_ "
                                               "and GOMP_ environment variables"
                                             : "");
}

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

void refuse_budgets_above_machine(const std::string& device, int64_t memory, int64_t host_memory) {
  if (device_kind(device) == DeviceKind::cpu) refuse_above_machine("--memory", memory);
  if (device_kind(device) == DeviceKind::accelerator) refuse_above_machine("--host-memory", host_memory);
}

int64_t default_budget(const std::string& device, const std::string& profile) {
  const DeviceKind kind = device_kind(device);
  if (kind == DeviceKind::accelerator) {
    const DeviceMemory memory = memory_of_device(device);
    return memory.free_bytes + memory.outside_arena_bytes.value_or(0);  // a plan books this process's context
  }
  const bool planned_only = kind == DeviceKind::null && !profile.empty();
  const int64_t described = planned_only ? load_profile(profile).memory_bytes : 0;
  return described > 0 ? described / 20 * 19 : available_memory() / 10 * 9;
}

int64_t default_host_budget(const std::string& device) {
  return device_kind(device) == DeviceKind::accelerator ? available_memory() / 10 * 9 : 0;
}

std::string budget_remark(const std::string& device, int64_t budget) {
  if (device_kind(device) != DeviceKind::cpu || budget <= available_memory()) return {};
  return fmt::format("note: the budget is more than this machine can give now ({} bytes)", available_memory());
}

void refuse_below(int64_t budget, int64_t needed) {
  if (budget == 0 || budget >= needed) return;
  throw Error(ErrorKind::does_not_fit,
              fmt::format("does not fit: the budget of {} bytes ({}) falls short by {} bytes; minimum_bytes {} ({})",
                          budget, format_bytes(budget), needed - budget, needed, format_least_bytes(needed)),
              fmt::format("give --memory {} or more", needed));
}

}  // namespace headroom
