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

// The builtin knows whether the operating system keeps the registers too.
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

int machine_set() {
  __builtin_cpu_init();
  if (!has_avx2()) return kNoVectors;
  if (!has_avx512()) return kAvx2;
  if (!feature(7, 1, kEax, 5)) return kAvx512;
  return has_amx() ? kAmx : kAvx512Bf16;
}

// As oneDNN reads it: either prefix, in any case; words that it does not know mean no limit.
int allowed_set() {
  const char* text = std::getenv("ONEDNN_MAX_CPU_ISA");
  if (!text) text = std::getenv("DNNL_MAX_CPU_ISA");
  if (!text) return kAmx;
  std::string word = text;
  for (char& c : word) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  constexpr std::array<std::pair<std::string_view, int>, 8> kWords{{{"SSE41", kNoVectors},
                                                                    {"AVX", kNoVectors},
                                                                    {"AVX2", kAvx2},
                                                                    {"AVX2_VNNI", kAvx2},
                                                                    {"AVX512_CORE", kAvx512},
                                                                    {"AVX512_CORE_VNNI", kAvx512},
                                                                    {"AVX512_CORE_BF16", kAvx512Bf16},
                                                                    {"AVX512_CORE_FP16", kAvx512Bf16}}};
  for (const auto& [name, isa] : kWords)
    if (word == name) return isa;
  return kAmx;
}

// A better target has a lower bit.
void limit_vectors(int isa) {
  if (isa < kAvx2) hwy::DisableTargets((HWY_AVX2 << 1) - 1);
  if (isa == kAvx2) hwy::DisableTargets(HWY_AVX2 - 1);
}

#else

int machine_set() { return kAvx2; }  // Highway's kernels on vectors of 128 bits, which every arm64 processor has
int allowed_set() { return kAmx; }
void limit_vectors(int) {}

#endif

}  // namespace

int instruction_set() {
  static const int usable = [] {
    const int isa = std::min(machine_set(), allowed_set());
    limit_vectors(isa);
    return isa;
  }();
  return usable;
}

std::string_view instruction_set_name(int isa) {
  switch (isa) {
    case kAvx2:
      return "AVX2";
    case kAvx512:
      return "AVX-512";
    case kAvx512Bf16:
      return "AVX-512 with bf16";
    case kAmx:
      return "AMX";
    default:
      return "no AVX2";
  }
}

}  // namespace headroom
