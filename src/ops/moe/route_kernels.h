// The router's kernels: plain loops, as there are only a few numbers per token.
#pragma once

#include <memory>

#include "ops/cpu/kernel.h"

namespace headroom {

std::unique_ptr<CpuKernel> make_route(const KernelSpec& spec);
std::unique_ptr<CpuKernel> make_route_grad(const KernelSpec& spec);

}  // namespace headroom
