// Kernels of a device by op: for each op the candidates, best first.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"

namespace headroom {

// A prepared kernel, or the reason why this implementation refuses the spec.
template <typename Kernel>
struct Offer {
  std::unique_ptr<Kernel> kernel;
  std::string refusal;
};

// `Candidate` has an `implementation` (its name) and make(spec, context), which returns an Offer<Kernel>.
template <typename Candidate>
class KernelTable {
 public:
  // `device` names it in messages: "CPU", "CUDA".
  explicit KernelTable(std::string_view device) : device_(device) {}

  // Throws InternalError if the op already has candidates, or `candidates` is empty.
  void add(std::string_view op, std::vector<Candidate> candidates) {
    HR_CHECK(!candidates.empty(), "op {} has no kernel", op);
    HR_CHECK(kernels_.emplace(std::string(op), std::move(candidates)).second, "the kernels of {} are registered twice",
             op);
  }
  // Throws InternalError if there are none.
  const std::vector<Candidate>& candidates(std::string_view op) const {
    const auto at = kernels_.find(op);
    HR_CHECK(at != kernels_.end(), "op {} has no {} kernel", op, device_);
    return at->second;
  }
  bool has(std::string_view op) const { return kernels_.contains(op); }

  // The kernel of the first candidate that accepts; `only` restricts to one implementation, `chosen` receives its name.
  // Throws InternalError with all refusals if none accepts.
  template <typename Spec, typename Context>
  auto make(const Spec& spec, const Context& context, std::string_view only, std::string* chosen) const {
    std::string refusals;
    for (const Candidate& candidate : candidates(spec.op)) {
      if (!only.empty() && candidate.implementation != only) continue;
      auto offer = candidate.make(spec, context);
      if (offer.kernel) {
        if (chosen) *chosen = candidate.implementation;
        return std::move(offer.kernel);
      }
      refusals += fmt::format(" {}: {};", candidate.implementation, offer.refusal);
    }
    throw InternalError(fmt::format("no {} kernel accepts {}:{}", device_, spec.op, refusals));
  }

 private:
  std::string device_;
  std::map<std::string, std::vector<Candidate>, std::less<>> kernels_;
};

}  // namespace headroom
