// Who holds a GPU's memory, asked of NVIDIA's management library, which is opened when first needed.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace headroom {

struct GpuProcess {
  int64_t pid = 0;
  std::string name;   // empty when it runs outside this machine's view (another container)
  int64_t bytes = 0;  // of device memory; 0 when the driver does not say
};

// nvmlProcessInfo_t of API versions 2 and 3.
struct NvmlProcessInfo {
  unsigned pid;
  unsigned long long used;  // bytes; all ones where the driver does not say
  unsigned gpu_instance;
  unsigned compute_instance;
};

// The entry points that are used, by the library's own names and signatures (NVML API reference, "Device Queries").
struct NvmlTable {
  int (*init)() = nullptr;
  int (*shutdown)() = nullptr;
  int (*device_by_bus_id)(const char* bus_id, void** device) = nullptr;
  int (*running_processes)(void* device, unsigned* count, void* infos) = nullptr;
};

// The library of this machine; a table of nulls where there is none.
NvmlTable open_nvml();

// Processes with memory on the device at this PCI bus id ("00000000:1B:00.0"), the largest first. Empty when the
// library or the device is not there, or the driver does not tell.
std::vector<GpuProcess> gpu_processes(const std::string& bus_id, const NvmlTable& table);

// What this process holds of the device, its context too; nothing where the driver does not tell (in a container).
std::optional<int64_t> own_bytes(const std::string& bus_id, const NvmlTable& table);

// "python (pid 4242) holds 12.0 GiB, ..." of at most `most` processes; empty for none.
std::string describe(const std::vector<GpuProcess>& processes, size_t most = 3);

}  // namespace headroom
