// What plans and kernels tell apart of CPUs.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "ir/capabilities.h"

namespace headroom {

inline constexpr Capability kAvx2{"avx2"};      // with FMA, BMI, F16C; on arm64 vectors of 128 bits
inline constexpr Capability kAvx512{"avx512"};  // F, BW, DQ, VL
inline constexpr Capability kAvx512Bf16{"avx512_bf16"};
inline constexpr Capability kAmx = kBf16Tiles;

// Each with the capabilities of those before it.
enum class InstructionSet : uint8_t { none, avx2, avx512, avx512_bf16, amx };
inline constexpr std::array<InstructionSet, 5> kInstructionSets{InstructionSet::none, InstructionSet::avx2,
                                                                InstructionSet::avx512, InstructionSet::avx512_bf16,
                                                                InstructionSet::amx};

Capabilities capabilities_of(InstructionSet set);
// The largest whose capabilities are all there.
InstructionSet instruction_set_of(const Capabilities& capabilities);
// "AVX-512 with bf16"; "no AVX2" of none.
std::string_view instruction_set_name(InstructionSet set);

}  // namespace headroom
