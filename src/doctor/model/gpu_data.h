// GPUs and the other spellings of their names. Data alone; gpu_table.cpp looks names up.
#pragma once

#include <span>

namespace headroom::doctor {

struct GpuRow {
  const char* name;
  int mib;         // what cudaMemGetInfo reports as total (a little less than the marketing figure); 0 for the CPU
  int capability;  // 80 = 8.0; 0: not NVIDIA
  double half_tflops, single_tflops, gb_per_second;
};
// `key`: another spelling, as gpu_table.cpp's key_of() writes it.
struct GpuAlias {
  const char* key;
  const char* name;
};

std::span<const GpuRow> gpu_rows();
std::span<const GpuAlias> gpu_aliases();

}  // namespace headroom::doctor
