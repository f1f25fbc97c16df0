// The CPU features that plans and kernels distinguish.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "ir/capabilities.h"

namespace headroom {

inline constexpr Capability kAvx2{"avx2"};               // with FMA, BMI, F16C; on arm64: 128-bit vectors
inline constexpr Capability kAvx512{"avx512"};           // F, BW, DQ, VL
inline constexpr Capability kAvx512Bf16{"avx512_bf16"};  // with VNNI, which is older
inline constexpr Capability kAmx = kBf16Tiles;

// Each includes the capabilities of those before it.
enum class InstructionSet : uint8_t { none, avx2, avx512, avx512_bf16, amx };
inline constexpr std::array<InstructionSet, 5> kInstructionSets{InstructionSet::none, InstructionSet::avx2,
                                                                InstructionSet::avx512, InstructionSet::avx512_bf16,
                                                                InstructionSet::amx};

Capabilities capabilities_of(InstructionSet set);
// The largest set whose capabilities are all present.
InstructionSet instruction_set_of(const Capabilities& capabilities);
// For example "AVX-512 with bf16"; "no AVX2" for none.
std::string_view instruction_set_name(InstructionSet set);

}  // namespace headroom
