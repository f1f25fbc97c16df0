// What a library of the device returns when asked to prepare a call.
#pragma once

#include <fmt/format.h>

#include <memory>
#include <string>

namespace headroom {

// A prepared call, which several kernels may share, or why there is none.
template <typename Call>
struct CudaLibraryOffer {
  std::shared_ptr<const Call> call;
  std::string refusal;
};

// Counts the calls that a library failed to prepare or to rehearse. Each is refused, and other kernels are used.
class CudaLibraryFailures {
 public:
  void add(const std::string& words) {
    if (count_++ == 0) first_ = words;
  }
  // A sentence for the user, for `what` computed by `library`: "products by our own kernels where cuBLASLt fails
  // (WORDS; and 2 more)". Empty when nothing failed.
  std::string remark(const std::string& what, const std::string& library) const {
    if (count_ == 0) return {};
    return fmt::format("{} by our own kernels where {} fails ({}{})", what, library, first_,
                       count_ > 1 ? fmt::format("; and {} more", count_ - 1) : "");
  }

 private:
  std::string first_;
  int count_ = 0;
};

}  // namespace headroom
