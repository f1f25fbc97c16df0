#include "cost/call_costs.h"

#include <algorithm>

#include "base/mixed_hash.h"
#include "cost/predict.h"

namespace headroom {
namespace {

bool reads_many_measurements(CostClass cost) {
  return cost == CostClass::gemm || cost == CostClass::logits || cost == CostClass::attention ||
         cost == CostClass::attention_grad || is_loss(cost);
}

uint64_t hash_of(const Op& op, const OpCall& call) {
  uint64_t hash = reinterpret_cast<uintptr_t>(&op);
  for (const ConcreteType& type : call.inputs)
    for (const int64_t dim : type.dims) hash = mixed_hash(hash, static_cast<uint64_t>(dim));
  return hash;
}

}  // namespace

double CallCosts::seconds(const Op& op, const OpCall& call) {
  if (!reads_many_measurements(op.cost_class())) return predict_call(op, call, profile_);
  const uint64_t hash = hash_of(op, call);
  const auto [begin, end] = known_.equal_range(hash);
  const auto known = std::find_if(begin, end, [&](const auto& entry) {
    const Known& at = entry.second;
    return at.op == &op && at.attrs == call.attrs && std::ranges::equal(at.inputs, call.inputs) &&
           std::ranges::equal(at.outputs, call.outputs);
  });
  if (known != end) return known->second.seconds;
  const double seconds = predict_call(op, call, profile_);
  known_.insert({hash,
                 {&op,
                  call.attrs,
                  {call.inputs.begin(), call.inputs.end()},
                  {call.outputs.begin(), call.outputs.end()},
                  seconds}});
  return seconds;
}

}  // namespace headroom
