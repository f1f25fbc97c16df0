#include "device/device.h"
#include "ops/cpu/instruction_set.h"

namespace headroom {

DeviceFacts cpu_facts(int threads) {
  DeviceFacts facts;
  facts.device = "cpu";
  facts.threads = threads;
  facts.isa = instruction_set();
  facts.native_bf16 = facts.isa >= kAvx512Bf16;
  facts.alignment = 64;
  return facts;
}

std::string_view cpu_isa_name(int isa) { return instruction_set_name(isa); }

}  // namespace headroom
