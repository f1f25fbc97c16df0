// The CPU as seen by planning.
#include "ops/backend.h"

#include <algorithm>
#include <array>

#include "ops/cpu/capabilities.h"

namespace headroom {

void register_all_cpu_scratch(ScratchRules& rules);  // generated

namespace {

// An instruction set in profiles; older ones have the number.
struct ProfileWord {
  std::string_view name;
  int64_t number;
  InstructionSet set;
};
constexpr std::array<ProfileWord, kInstructionSets.size()> kWords{{{"none", 0, InstructionSet::none},
                                                                   {"avx2", 2, InstructionSet::avx2},
                                                                   {"avx512", 512, InstructionSet::avx512},
                                                                   {"avx512_bf16", 513, InstructionSet::avx512_bf16},
                                                                   {"amx", 514, InstructionSet::amx}}};

class CpuBackend final : public Backend {
 public:
  CpuBackend() { register_all_cpu_scratch(scratch_); }
  std::string_view name() const override { return "cpu"; }
  int64_t alignment() const override { return 64; }
  const ScratchRules& scratch() const override { return scratch_; }

  std::optional<Capabilities> capabilities_named(std::string_view name) const override {
    for (const ProfileWord& word : kWords)
      if (word.name == name) return capabilities_of(word.set);
    return std::nullopt;
  }
  std::optional<Capabilities> capabilities_numbered(int64_t number) const override {
    for (const ProfileWord& word : kWords)
      if (word.number == number) return capabilities_of(word.set);
    return std::nullopt;
  }
  std::string capabilities_name(const Capabilities& capabilities) const override {
    const InstructionSet set = instruction_set_of(capabilities);
    const auto* word = std::find_if(kWords.begin(), kWords.end(), [&](const ProfileWord& w) { return w.set == set; });
    return std::string(word->name);
  }
  std::string_view known_names() const override { return "none, avx2, avx512, avx512_bf16 or amx of a cpu"; }
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
