// Replaces cudnn.cpp when cuDNN's headers are not installed.
#include "ops/cuda/cudnn.h"

namespace headroom {

std::unique_ptr<CudaDnn> open_cudnn(int, std::string& reason, const CudnnOptions&) {
  reason = "this build was made without cuDNN's headers";
  return nullptr;
}

}  // namespace headroom
