// The time of a step by kernel, grouped by op and shape, with their work.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "plan/plan.h"

namespace headroom {

// `seconds` and `calls` are by instruction of one run of `program`. Returns operations.json, longest first:
// {"operations": [{"op", "stage", "operands", "calls", "flops", "bytes" (moved at least, by the op's rule), "seconds",
// "predicted_seconds"}]}; flops and bytes are sums over the calls. docs/report.md.
std::string operations_json(const PlanProgram& program, std::span<const double> seconds,
                            std::span<const int64_t> calls);

}  // namespace headroom
