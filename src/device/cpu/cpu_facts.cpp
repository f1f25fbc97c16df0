#include "device/device.h"
#include "ops/cpu/instruction_set.h"

namespace headroom {

DeviceFacts cpu_facts(int threads) {
  DeviceFacts facts;
  facts.device = "cpu";
  facts.threads = threads;
  facts.capabilities = capabilities_of(instruction_set());
  facts.native_bf16 = facts.capabilities.has(kAvx512Bf16);
  facts.alignment = 64;
  return facts;
}

}  // namespace headroom
