// Predicted seconds of calls, computed once for calls that are alike: the layers of a model repeat each other's.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "cost/profile.h"
#include "ir/op.h"

namespace headroom {

// Remembers the seconds of matrix products, losses and attention, whose prediction reads every measurement of the
// profile. `profile` must outlive it. Not thread-safe.
class CallCosts {
 public:
  explicit CallCosts(const Profile& profile) : profile_(profile) {}

  // predict_call() of cost/predict.h.
  double seconds(const Op& op, const OpCall& call);
  const Profile& profile() const { return profile_; }

 private:
  struct Known {
    const Op* op;
    Attrs attrs;
    std::vector<ConcreteType> inputs, outputs;
    double seconds;
  };

  const Profile& profile_;
  std::unordered_multimap<uint64_t, Known> known_;  // by a hash of the op and its inputs' dimensions
};

}  // namespace headroom
