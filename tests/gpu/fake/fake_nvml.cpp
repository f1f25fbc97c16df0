// NVIDIA's management library as used by the scripts of benchmarks/gpu, for a machine without a GPU: one idle device of
// 8 GiB.
#include <cstring>

namespace {
struct Memory {
  unsigned long long total, free, used;
};
int a_device = 0;
}  // namespace

extern "C" {
int nvmlInit_v2() { return 0; }
int nvmlShutdown() { return 0; }
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void** device) {
  *device = &a_device;
  return index == 0 ? 0 : 6;
}
int nvmlDeviceGetHandleByPciBusId_v2(const char*, void** device) { return nvmlDeviceGetHandleByIndex_v2(0, device); }
int nvmlDeviceGetMemoryInfo(void*, Memory* memory) {
  *memory = {8ull << 30, 8ull << 30, 0};
  return 0;
}
int nvmlDeviceGetComputeRunningProcesses_v3(void*, unsigned* count, void*) {
  *count = 0;
  return 0;
}
}
