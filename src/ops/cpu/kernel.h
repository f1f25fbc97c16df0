// CPU kernels: prepared once from concrete types (library primitives are created here), then run many times without
// heap calls of our own. One kernel object serves every node with the same op, attributes and types: it holds no
// addresses.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "ops/kernel.h"
#include "ops/kernel_table.h"

namespace headroom {

class CpuKernel {
 public:
  virtual ~CpuKernel() = default;
  // Concurrent calls need distinct scratch and outputs. Runs on the thread team of base/threads.h.
  virtual void run(const KernelCall& call) const = 0;
};

using KernelOffer = Offer<CpuKernel>;
using KernelFactory = KernelOffer (*)(const KernelSpec& spec, const DeviceFacts& facts);

struct KernelCandidate {
  std::string_view implementation;  // "onednn", "simd", "reference"
  KernelFactory make = nullptr;
};

// The last candidate of an op is a reference kernel that accepts every legal spec.
using CpuKernels = KernelTable<KernelCandidate>;

// Every CPU kernel, built once. Thread-safe.
const CpuKernels& cpu_kernels();

// The first candidate that accepts. `only` restricts the choice to one implementation (for tests). Throws InternalError
// with all refusals if none accepts.
std::unique_ptr<CpuKernel> make_cpu_kernel(const KernelSpec& spec, const DeviceFacts& facts, std::string_view only = {},
                                           std::string* chosen = nullptr);

// A kernel made of a callable, for small reference kernels.
template <typename F>
std::unique_ptr<CpuKernel> kernel_of(F body) {
  class Lambda final : public CpuKernel {
   public:
    explicit Lambda(F body) : body_(std::move(body)) {}
    void run(const KernelCall& call) const override { body_(call); }

   private:
    F body_;
  };
  return std::make_unique<Lambda>(std::move(body));
}

}  // namespace headroom
