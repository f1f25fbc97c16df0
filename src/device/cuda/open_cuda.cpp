#include "device/cuda/cuda_device.h"

namespace headroom {

std::unique_ptr<Device> open_cuda_device(int index, const DeviceFacts& facts) {
  return make_cuda_device(open_cuda_runtime(index), facts);
}

DeviceFacts cuda_facts(int index) { return facts_of(open_cuda_runtime(index)->properties()); }

}  // namespace headroom
