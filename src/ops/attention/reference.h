// Reference kernels for every legal call: one row at a time, in double arithmetic.
#pragma once

#include "ops/attention/forward_driver.h"
#include "ops/attention/grad_driver.h"

namespace headroom {

void reference_forward(const ForwardCall& call);
void reference_grad(const GradCall& call);

}  // namespace headroom
