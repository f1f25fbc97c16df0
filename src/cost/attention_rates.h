// Rates of attention: the mean of a profile's measured ones, weighted by the distance of their shapes, by kernel set.
#pragma once

#include <string_view>

#include "cost/profile.h"
#include "ir/op.h"

namespace headroom {

enum class AttentionPass : uint8_t { forward, backward };

// Mean of the logarithms of the rates that were measured with these kernels (ops/attention/kernel_choice.h), as flops
// per second, by distance in sequence length and head dimension; 0 where none was. `call` is one of attention or its
// gradient. Pure.
double measured_attention_rate(const Profile& profile, std::string_view kernels, const OpCall& call,
                               AttentionPass pass);

// The rate of the kernels that the call names, if measured; else that of Profile::attention. Throws InternalError if
// the profile has none for the dtype. Pure.
double attention_rate(const Profile& profile, const OpCall& call, AttentionPass pass);

}  // namespace headroom
