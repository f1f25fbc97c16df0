// What a library of the device answers when it is asked to prepare a call.
#pragma once

#include <memory>
#include <string>

namespace headroom {

// A prepared call, which several kernels may share, or the reason why there is none.
template <typename Call>
struct CudaLibraryOffer {
  std::shared_ptr<const Call> call;
  std::string refusal;
};

}  // namespace headroom
