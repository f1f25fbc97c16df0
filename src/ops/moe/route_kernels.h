// The router's kernels: a few numbers per token, so that plain loops do.
#pragma once

#include <memory>

#include "ops/cpu/kernel.h"

namespace headroom {

std::unique_ptr<CpuKernel> make_route(const KernelSpec& spec);
std::unique_ptr<CpuKernel> make_route_grad(const KernelSpec& spec);

}  // namespace headroom
