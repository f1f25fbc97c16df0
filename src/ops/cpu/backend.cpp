// The CPU as seen by planning.
#include "ops/backend.h"

#include <algorithm>
#include <utility>

#include "ops/cpu/capabilities.h"

namespace headroom {

void register_all_cpu_scratch(ScratchRules& rules);  // generated

namespace {

// The numbers of instruction sets in profiles.
constexpr std::array<std::pair<int64_t, InstructionSet>, kInstructionSets.size()> kNumbers{
    {{0, InstructionSet::none},
     {2, InstructionSet::avx2},
     {512, InstructionSet::avx512},
     {513, InstructionSet::avx512_bf16},
     {514, InstructionSet::amx}}};

class CpuBackend final : public Backend {
 public:
  CpuBackend() { register_all_cpu_scratch(scratch_); }
  std::string_view name() const override { return "cpu"; }
  int64_t alignment() const override { return 64; }
  const ScratchRules& scratch() const override { return scratch_; }

  std::optional<Capabilities> capabilities(int64_t number) const override {
    for (const auto& [known, set] : kNumbers)
      if (known == number) return capabilities_of(set);
    return std::nullopt;
  }
  int64_t number(const Capabilities& capabilities) const override {
    const InstructionSet wanted = instruction_set_of(capabilities);
    return std::find_if(kNumbers.begin(), kNumbers.end(), [&](const auto& row) { return row.second == wanted; })->first;
  }
  std::string_view numbers() const override { return "0, 2, 512, 513 or 514 of a cpu"; }
  std::string describe(const Capabilities& capabilities) const override {
    return std::string(instruction_set_name(instruction_set_of(capabilities)));
  }

 private:
  ScratchRules scratch_;
};

}  // namespace

void register_cpu_backend(Backends& backends);
void register_cpu_backend(Backends& backends) { backends.add(std::make_unique<CpuBackend>()); }

Capabilities capabilities_of(InstructionSet set) {
  Capabilities all;
  if (set >= InstructionSet::avx2) all.add(kAvx2);
  if (set >= InstructionSet::avx512) all.add(kAvx512);
  if (set >= InstructionSet::avx512_bf16) all.add(kAvx512Bf16);
  if (set >= InstructionSet::amx) all.add(kAmx);
  return all;
}

InstructionSet instruction_set_of(const Capabilities& capabilities) {
  InstructionSet largest = InstructionSet::none;
  for (const InstructionSet set : kInstructionSets)
    if (capabilities.cover(capabilities_of(set))) largest = set;
  return largest;
}

std::string_view instruction_set_name(InstructionSet set) {
  switch (set) {
    case InstructionSet::avx2:
      return "AVX2";
    case InstructionSet::avx512:
      return "AVX-512";
    case InstructionSet::avx512_bf16:
      return "AVX-512 with bf16";
    case InstructionSet::amx:
      return "AMX";
    default:
      return "no AVX2";
  }
}

}  // namespace headroom
