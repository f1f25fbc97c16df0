#include "ops/cpu/instruction_set.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdlib>
#include <string>
#include <utility>

#include "hwy/targets.h"
#include "ops/cpu/amx.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace headroom {
namespace {

#if defined(__x86_64__)

enum Register { kEax, kEbx, kEcx, kEdx };

bool feature(unsigned leaf, unsigned subleaf, Register reg, int bit) {
  unsigned values[4] = {};
  if (!__get_cpuid_count(leaf, subleaf, &values[0], &values[1], &values[2], &values[3])) return false;
  return (values[reg] >> bit) & 1u;
}

// The builtin also checks that the operating system saves the registers.
bool has_avx2() {
  const bool f16c = feature(1, 0, kEcx, 29), lzcnt = feature(0x80000001u, 0, kEcx, 5);
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi") &&
         __builtin_cpu_supports("bmi2") && f16c && lzcnt;
}

bool has_avx512() {
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq");
}

#ifdef HEADROOM_HAS_AMX
bool has_amx() { return feature(7, 0, kEdx, 22) && feature(7, 0, kEdx, 24) && amx::tiles_permitted(); }
#else
bool has_amx() { return false; }
#endif

InstructionSet machine_set() {
  __builtin_cpu_init();
  if (!has_avx2()) return InstructionSet::none;
  if (!has_avx512()) return InstructionSet::avx2;
  const bool bf16 = feature(7, 1, kEax, 5), vnni = feature(7, 0, kEcx, 11);
  if (!bf16 || !vnni) return InstructionSet::avx512;
  return has_amx() ? InstructionSet::amx : InstructionSet::avx512_bf16;
}

// As oneDNN reads it: either prefix, case-insensitive; an unknown word means no limit.
InstructionSet allowed_set() {
  const char* text = std::getenv("ONEDNN_MAX_CPU_ISA");
  if (!text) text = std::getenv("DNNL_MAX_CPU_ISA");
  if (!text) return InstructionSet::amx;
  std::string word = text;
  for (char& c : word) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  constexpr std::array<std::pair<std::string_view, InstructionSet>, 8> kWords{
      {{"SSE41", InstructionSet::none},
       {"AVX", InstructionSet::none},
       {"AVX2", InstructionSet::avx2},
       {"AVX2_VNNI", InstructionSet::avx2},
       {"AVX512_CORE", InstructionSet::avx512},
       {"AVX512_CORE_VNNI", InstructionSet::avx512},
       {"AVX512_CORE_BF16", InstructionSet::avx512_bf16},
       {"AVX512_CORE_FP16", InstructionSet::avx512_bf16}}};
  for (const auto& [name, set] : kWords)
    if (word == name) return set;
  return InstructionSet::amx;
}

// In Highway, better targets have lower bits.
void limit_vectors(InstructionSet set) {
  if (set < InstructionSet::avx2) hwy::DisableTargets((HWY_AVX2 << 1) - 1);
  if (set == InstructionSet::avx2) hwy::DisableTargets(HWY_AVX2 - 1);
}

#else

// Highway's kernels with 128-bit vectors, which every arm64 processor has.
InstructionSet machine_set() { return InstructionSet::avx2; }
InstructionSet allowed_set() { return InstructionSet::amx; }
void limit_vectors(InstructionSet) {}

#endif

}  // namespace

InstructionSet instruction_set() {
  static const InstructionSet usable = [] {
    const InstructionSet set = std::min(machine_set(), allowed_set());
    limit_vectors(set);
    return set;
  }();
  return usable;
}

}  // namespace headroom
