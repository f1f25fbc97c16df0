#include <cpuid.h>

#include <algorithm>
#include <cstdlib>
#include <string_view>

#include "device/device.h"

namespace headroom {
namespace {

bool feature(unsigned leaf, unsigned subleaf, int reg, int bit) {
  unsigned values[4] = {};
  if (!__get_cpuid_count(leaf, subleaf, &values[0], &values[1], &values[2], &values[3])) return false;
  return (values[reg] >> bit) & 1u;
}

// oneDNN can be told to use less than the machine has; our kernels follow, so that one run uses one instruction set.
int isa_limit() {
  const char* text = std::getenv("ONEDNN_MAX_CPU_ISA");
  if (!text) return 514;
  const std::string_view limit = text;
  if (limit == "AVX2") return 2;
  if (limit == "AVX512_CORE" || limit == "AVX512_CORE_VNNI") return 512;
  if (limit == "AVX512_CORE_BF16") return 513;
  return 514;
}

int detect_isa() {
  constexpr int kEdx = 3, kEax = 0;
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma")) return 0;
  if (!__builtin_cpu_supports("avx512f") || !__builtin_cpu_supports("avx512bw") ||
      !__builtin_cpu_supports("avx512vl") || !__builtin_cpu_supports("avx512dq"))
    return 2;
  if (!feature(7, 1, kEax, 5)) return 512;
  const bool amx = feature(7, 0, kEdx, 22) && feature(7, 0, kEdx, 24);
  return amx ? 514 : 513;
}

}  // namespace

DeviceFacts cpu_facts(int threads) {
  DeviceFacts facts;
  facts.device = "cpu";
  facts.threads = threads;
  facts.isa = std::min(detect_isa(), isa_limit());
  facts.native_bf16 = facts.isa >= 513;
  facts.alignment = 64;
  return facts;
}

}  // namespace headroom
