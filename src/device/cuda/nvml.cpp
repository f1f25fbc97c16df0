#include "device/cuda/nvml.h"

#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <map>

#include "base/bytes.h"
#include "base/error.h"

namespace headroom {
namespace {

constexpr unsigned kMostProcesses = 256;
constexpr unsigned long long kUnknown = ~0ull;

std::string process_name(unsigned pid) {
  std::ifstream file(fmt::format("/proc/{}/comm", pid));
  std::string name;
  std::getline(file, name);
  return name;
}

template <typename F>
void find(void* library, const char* name, F& entry) {
  entry = reinterpret_cast<F>(::dlsym(library, name));
}

}  // namespace

NvmlTable open_nvml() {
  NvmlTable table;
  void* const library = ::dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
  if (!library) return table;
  find(library, "nvmlInit_v2", table.init);
  find(library, "nvmlShutdown", table.shutdown);
  find(library, "nvmlDeviceGetHandleByPciBusId_v2", table.device_by_bus_id);
  find(library, "nvmlDeviceGetComputeRunningProcesses_v3", table.running_processes);
  return table;
}

std::vector<GpuProcess> gpu_processes(const std::string& bus_id, const NvmlTable& table) {
  if (!table.init || !table.shutdown || !table.device_by_bus_id || !table.running_processes) return {};
  if (table.init() != 0) return {};
  std::vector<NvmlProcessInfo> infos(kMostProcesses);
  unsigned count = kMostProcesses;
  void* device = nullptr;
  const bool known = table.device_by_bus_id(bus_id.c_str(), &device) == 0 &&
                     table.running_processes(device, &count, infos.data()) == 0;
  table.shutdown();
  if (!known) return {};
  std::map<unsigned, GpuProcess> by_pid;  // a process with several contexts is listed several times
  for (unsigned i = 0; i < std::min(count, kMostProcesses); ++i) {
    GpuProcess& process = by_pid[infos[i].pid];
    process.pid = infos[i].pid;
    process.name = process_name(infos[i].pid);
    if (infos[i].used != kUnknown) process.bytes += static_cast<int64_t>(infos[i].used);
  }
  std::vector<GpuProcess> processes;
  for (auto& [pid, process] : by_pid) processes.push_back(std::move(process));
  std::stable_sort(processes.begin(), processes.end(),
                   [](const GpuProcess& a, const GpuProcess& b) { return a.bytes > b.bytes; });
  return processes;
}

std::optional<int64_t> own_bytes(const std::string& bus_id, const NvmlTable& table) {
  for (const GpuProcess& process : gpu_processes(bus_id, table))
    if (process.pid == ::getpid() && process.bytes > 0) return process.bytes;
  return std::nullopt;
}

std::string describe(const std::vector<GpuProcess>& processes, size_t most) {
  std::string text;
  for (size_t i = 0; i < std::min(most, processes.size()); ++i) {
    const GpuProcess& process = processes[i];
    text += fmt::format("{}{} (pid {}) holds {}", i == 0 ? "" : ", ", process.name.empty() ? "a process" : process.name,
                        process.pid, process.bytes > 0 ? format_bytes(process.bytes) : "memory");
  }
  if (processes.size() > most) text += fmt::format(", and {} more", processes.size() - most);
  return text;
}

}  // namespace headroom
