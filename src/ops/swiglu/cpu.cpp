// CPU kernels of swiglu and swiglu_grad.
#include "ops/swiglu/simd.h"

#include <cmath>

#include "base/threads.h"
#include "ops/stream/scalar_access.h"

namespace headroom {
namespace {

constexpr int64_t kGrain = 2048;

std::unique_ptr<CpuKernel> forward_simd(const KernelSpec&) {
  return kernel_of([](const KernelCall& call) {
    SwigluArrays arrays;
    arrays.gate = call.inputs[0].data;
    arrays.up = call.inputs[1].data;
    arrays.h = call.outputs[0].data;
    arrays.dtype = call.outputs[0].dtype;
    parallel_for(call.outputs[0].count(), kGrain,
                 [&](int64_t begin, int64_t end, int) { swiglu_range(arrays, begin, end); });
  });
}

std::unique_ptr<CpuKernel> forward_reference(const KernelSpec&) {
  return kernel_of([](const KernelCall& call) {
    for (int64_t i = 0; i < call.outputs[0].count(); ++i) {
      const double x = read_element(call.inputs[0], i);
      write_element(call.outputs[0], i, x / (1 + std::exp(-x)) * read_element(call.inputs[1], i));
    }
  });
}

std::unique_ptr<CpuKernel> grad_simd(const KernelSpec&) {
  return kernel_of([](const KernelCall& call) {
    SwigluArrays arrays;
    arrays.gate = call.inputs[0].data;
    arrays.up = call.inputs[1].data;
    arrays.dh = call.inputs[2].data;
    arrays.dgate = call.outputs[0].data;
    arrays.dup = call.outputs[1].data;
    arrays.dtype = call.outputs[0].dtype;
    parallel_for(call.outputs[0].count(), kGrain,
                 [&](int64_t begin, int64_t end, int) { swiglu_grad_range(arrays, begin, end); });
  });
}

std::unique_ptr<CpuKernel> grad_reference(const KernelSpec&) {
  return kernel_of([](const KernelCall& call) {
    for (int64_t i = 0; i < call.outputs[0].count(); ++i) {
      const double x = read_element(call.inputs[0], i);
      const double up = read_element(call.inputs[1], i);
      const double dh = read_element(call.inputs[2], i);
      const double s = 1 / (1 + std::exp(-x));
      write_element(call.outputs[0], i, dh * up * s * (1 + x * (1 - s)));
      write_element(call.outputs[1], i, dh * x * s);
    }
  });
}

}  // namespace

void register_swiglu_cpu(CpuKernels& kernels) {
  kernels.add("swiglu", simd_and_reference<forward_simd, forward_reference>());
  kernels.add("swiglu_grad", simd_and_reference<grad_simd, grad_reference>());
}

}  // namespace headroom
