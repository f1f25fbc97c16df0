// Kernels of a device by op: for each op the candidates, best first.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"

namespace headroom {

template <typename Candidate>
class KernelTable {
 public:
  // Throws InternalError when the op is there already, or `candidates` is empty.
  void add(std::string_view op, std::vector<Candidate> candidates) {
    HR_CHECK(!candidates.empty(), "op {} has no kernel", op);
    HR_CHECK(kernels_.emplace(std::string(op), std::move(candidates)).second, "the kernels of {} are registered twice",
             op);
  }
  // Throws InternalError when there are none.
  const std::vector<Candidate>& candidates(std::string_view op) const {
    const auto at = kernels_.find(op);
    HR_CHECK(at != kernels_.end(), "op {} has no kernel on this device", op);
    return at->second;
  }
  bool has(std::string_view op) const { return kernels_.contains(op); }
  const std::map<std::string, std::vector<Candidate>, std::less<>>& all() const { return kernels_; }

 private:
  std::map<std::string, std::vector<Candidate>, std::less<>> kernels_;
};

}  // namespace headroom
