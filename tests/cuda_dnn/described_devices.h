// GPUs in cuDNN's own JSON, so that it can plan for them without one. The figures are from NVIDIA's data sheets and the
// compute capability; names and clocks do not affect what is tested.
#pragma once

#include <fmt/format.h>

#include <ostream>
#include <string>

namespace headroom {

struct DescribedDevice {
  int capability;  // 10 major + minor
  const char* name;
  int multiprocessors;
  int shared_bytes;  // maximum for a block
  int blocks;        // per multiprocessor
  int threads;       // per multiprocessor
  int cache_bytes;
};

constexpr DescribedDevice kA100{80, "NVIDIA A100-SXM4-80GB", 108, 166912, 32, 2048, 40 << 20};
constexpr DescribedDevice kL40s{89, "NVIDIA L40S", 142, 101376, 24, 1536, 96 << 20};
constexpr DescribedDevice kH100{90, "NVIDIA H100 80GB HBM3", 132, 232448, 32, 2048, 50 << 20};
constexpr DescribedDevice kB200{100, "NVIDIA B200", 148, 232448, 32, 2048, 126 << 20};
constexpr DescribedDevice kRtx5090{120, "NVIDIA GeForce RTX 5090", 170, 101376, 24, 1536, 96 << 20};

inline void PrintTo(const DescribedDevice& device, std::ostream* out) { *out << device.name; }

inline std::string properties_json(const DescribedDevice& device) {
  return fmt::format(
      R"({{"deviceVer": {}, "deviceName": "{}", "multiProcessorCount": {}, "maxSharedMemoryPerBlockOptin": {}, )"
      R"("maxCtasPerSM": {}, "maxThreadsPerSM": {}, "l2CacheSize": {}, )"
      R"("maxGridSize": [2147483647, 65535, 65535], "maxBlockSize": [1024, 1024, 64], "maxThreadsPerBlock": 1024, )"
      R"("maxSharedMemoryPerBlock": 49152, "reservedSharedMemoryPerBlock": 1024, "oversizedSharedMemoryPerBlock": 0, )"
      R"("regsPerBlock": 65536, "maxRegistersPerSM": 65536, "warpSize": 32, "supportCoopLaunch": 1, "isTccDriver": 0, )"
      R"("smCountOrigin": 0, "driverVer": 13000, "pciDeviceId": 0, "smClockRateKHz": 1500000, )"
      R"("memClockRateKHz": 1500000, "cudaDeviceId": 0, "totalGlobalMem": 50000000000}})",
      device.capability * 10, device.name, device.multiprocessors, device.shared_bytes, device.blocks, device.threads,
      device.cache_bytes);
}

}  // namespace headroom
