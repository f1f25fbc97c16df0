// Products of 8-bit activations with weights in blocks of integer codes (int8_blocks.h) on a CPU.
#pragma once

#include "ops/linear/cpu_rows.h"

namespace headroom {

// Why other kernels refuse such a call.
inline constexpr const char* kInBlocks = "8-bit activations are multiplied with codes, block by block";

// linear and linear_group with multiply = int8-blocks; need AVX2.
KernelOffer make_linear_int8_blocks(const KernelSpec& spec, const DeviceFacts& facts);
// The same by plain loops, on any machine.
KernelOffer make_linear_int8_blocks_reference(const KernelSpec& spec, const DeviceFacts& facts);

}  // namespace headroom
