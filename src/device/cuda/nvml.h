// Finds which processes hold a GPU's memory, with NVIDIA's management library, which is opened at the first use.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace headroom {

struct GpuProcess {
  int64_t pid = 0;
  std::string name;   // empty when the process is not visible from here (another container)
  int64_t bytes = 0;  // of device memory; 0 when the driver does not report it
};

// nvmlProcessInfo_t of API versions 2 and 3.
struct NvmlProcessInfo {
  unsigned pid;
  unsigned long long used;  // bytes; all ones when the driver does not report it
  unsigned gpu_instance;
  unsigned compute_instance;
};

// The functions used, with the library's names and signatures (NVML API reference, "Device Queries").
struct NvmlTable {
  int (*init)() = nullptr;
  int (*shutdown)() = nullptr;
  int (*device_by_bus_id)(const char* bus_id, void** device) = nullptr;
  int (*running_processes)(void* device, unsigned* count, void* infos) = nullptr;
};

// The library of this machine; a table of nulls when there is none.
NvmlTable open_nvml();

// Processes with memory on the device at this PCI bus id ("00000000:1B:00.0"), the largest first. Empty when the
// library or the device is missing, or the driver does not report them.
std::vector<GpuProcess> gpu_processes(const std::string& bus_id, const NvmlTable& table);

// Device memory of this process, its context included; nullopt when the driver does not report it (in a container).
std::optional<int64_t> own_bytes(const std::string& bus_id, const NvmlTable& table);

// "python (pid 4242) holds 12.0 GiB, ..." for at most `most` processes; empty for none.
std::string describe(const std::vector<GpuProcess>& processes, size_t most = 3);

}  // namespace headroom
