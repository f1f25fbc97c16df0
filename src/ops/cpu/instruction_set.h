// The CPU's instruction sets as plans and kernels tell them apart: the numbers of DeviceFacts::isa.
#pragma once

#include <string_view>

namespace headroom {

inline constexpr int kNoVectors = 0;  // less than AVX2: plain loops
inline constexpr int kAvx2 = 2;       // with FMA, BMI, F16C
inline constexpr int kAvx512 = 512;   // F, BW, DQ, VL
inline constexpr int kAvx512Bf16 = 513;
inline constexpr int kAmx = 514;

// What this process may use: of the machine's sets those that ONEDNN_MAX_CPU_ISA allows. The first call limits
// Highway's kernels to the same, so that one run uses one instruction set.
int instruction_set();

// "AVX-512 with bf16"
std::string_view instruction_set_name(int isa);

}  // namespace headroom
