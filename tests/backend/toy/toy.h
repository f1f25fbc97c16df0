// Declarations shared by the parts of the toy backend.
#pragma once

#include <memory>

#include "ops/kernel.h"
#include "ops/kernel_table.h"

namespace headroom::toy {

inline constexpr int64_t kAlignment = 512;
inline constexpr Capability kGears{"toy_gears"};

// Scratch of linear: one row of the result in f64.
inline int64_t row_of_sums(const OpCall& call) { return call.outputs[0].dims.back() * 8; }

class Kernel {
 public:
  virtual ~Kernel() = default;
  virtual void run(const KernelCall& call) const = 0;
};

struct Candidate {
  std::string_view implementation;
  Offer<Kernel> (*make)(const KernelSpec& spec, const DeviceFacts& facts) = nullptr;
};

// linear, gelu and add in f32. linear has two implementations; the first needs two gears.
const KernelTable<Candidate>& kernels();

}  // namespace headroom::toy
