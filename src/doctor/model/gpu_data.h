// GPUs and other spellings of their names. Data only; gpu_table.cpp looks names up.
#pragma once

#include <span>

namespace headroom::doctor {

struct GpuRow {
  const char* name;
  int mib;         // total memory as cudaMemGetInfo reports it (a little less than advertised); 0 for the CPU
  int capability;  // 80 = 8.0; 0: not NVIDIA
  double half_tflops, single_tflops, gb_per_second;
};
// `key`: another spelling, in the form of key_of() in gpu_table.cpp.
struct GpuAlias {
  const char* key;
  const char* name;
};

std::span<const GpuRow> gpu_rows();
std::span<const GpuAlias> gpu_aliases();

}  // namespace headroom::doctor
