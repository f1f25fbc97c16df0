// CPU kernels of dispatch and combine; those of the router are in cpu_route.cpp.
#include <cstring>

#include "base/threads.h"
#include "ops/moe/operands.h"
#include "ops/moe/route_kernels.h"
#include "ops/moe/shape.h"
#include "ops/moe/simd.h"
#include "ops/stream/scalar_access.h"

namespace headroom {
namespace {

constexpr int64_t kTokens = 8;  // grain

std::unique_ptr<CpuKernel> dispatch_kernel(const KernelSpec& spec) {
  return kernel_of([shape = routed_shape(spec.inputs[DispatchInputs::rows])](const KernelCall& call) {
    const TensorView& x = call.inputs[DispatchInputs::x];
    const int64_t bytes = x.dims.back() * dtype_bytes(x.dtype);
    const int32_t* rows = call.inputs[DispatchInputs::rows].as<int32_t>();
    std::byte* y = call.outputs[0].as<std::byte>();
    parallel_for(shape.tokens, kTokens, [&](int64_t begin, int64_t end, int) {
      for (int64_t pair = begin * shape.chosen; pair < end * shape.chosen; ++pair)
        std::memcpy(y + rows[pair] * bytes, x.as<std::byte>() + pair / shape.chosen * bytes,
                    static_cast<size_t>(bytes));
    });
  });
}

// Index of the weights and the residual among the inputs of a sum; 0 when there are none.
size_t weights_input(const KernelSpec& spec) { return spec.attrs.integer("weighted") != 0 ? 2 : 0; }
size_t residual_input(const KernelSpec& spec) {
  return spec.attrs.integer("residual") != 0 ? spec.inputs.size() - 1 : 0;
}

std::unique_ptr<CpuKernel> combine_simd(const KernelSpec& spec) {
  return kernel_of([shape = routed_shape(spec.inputs[CombineInputs::rows]), weights = weights_input(spec),
                    residual = residual_input(spec)](const KernelCall& call) {
    CombineArrays arrays;
    arrays.z = call.inputs[CombineInputs::z].data;
    arrays.rows = call.inputs[CombineInputs::rows].as<int32_t>();
    if (weights) arrays.weights = call.inputs[weights].as<float>();
    if (residual) arrays.residual = call.inputs[residual].data;
    arrays.y = call.outputs[0].data;
    arrays.dtype = call.inputs[CombineInputs::z].dtype;
    arrays.y_dtype = call.outputs[0].dtype;
    arrays.chosen = shape.chosen;
    arrays.width = call.outputs[0].dims.back();
    parallel_for(shape.tokens, kTokens, [&](int64_t begin, int64_t end, int) { combine_tokens(arrays, begin, end); });
  });
}

std::unique_ptr<CpuKernel> combine_reference(const KernelSpec& spec) {
  return kernel_of([shape = routed_shape(spec.inputs[CombineInputs::rows]), weights = weights_input(spec),
                    residual = residual_input(spec)](const KernelCall& call) {
    const int32_t* rows = call.inputs[CombineInputs::rows].as<int32_t>();
    const int64_t width = call.outputs[0].dims.back();
    for (int64_t at = 0; at < shape.tokens * width; ++at) {
      double sum = residual ? read_element(call.inputs[residual], at) : 0;
      for (int64_t pair = at / width * shape.chosen; pair < (at / width + 1) * shape.chosen; ++pair)
        sum += read_element(call.inputs[CombineInputs::z], rows[pair] * width + at % width) *
               (weights ? read_element(call.inputs[weights], pair) : 1);
      write_element(call.outputs[0], at, sum);
    }
  });
}

std::unique_ptr<CpuKernel> combine_grad_simd(const KernelSpec& spec) {
  return kernel_of([shape = routed_shape(spec.inputs[CombineGradInputs::rows])](const KernelCall& call) {
    CombineArrays arrays;
    arrays.dy = call.inputs[CombineGradInputs::dy].data;
    arrays.dy_dtype = call.inputs[CombineGradInputs::dy].dtype;
    arrays.z = call.inputs[CombineGradInputs::z].data;
    arrays.rows = call.inputs[CombineGradInputs::rows].as<int32_t>();
    arrays.weights = call.inputs[CombineGradInputs::weights].as<float>();
    arrays.dz = call.outputs[CombineGradOutputs::dz].data;
    arrays.dweights = call.outputs[CombineGradOutputs::dweights].as<float>();
    arrays.dtype = call.inputs[CombineGradInputs::z].dtype;
    arrays.chosen = shape.chosen;
    arrays.width = call.inputs[CombineGradInputs::dy].dims.back();
    parallel_for(shape.tokens, kTokens, [&](int64_t begin, int64_t end, int) { combine_tokens(arrays, begin, end); });
  });
}

std::unique_ptr<CpuKernel> combine_grad_reference(const KernelSpec& spec) {
  return kernel_of([shape = routed_shape(spec.inputs[CombineGradInputs::rows])](const KernelCall& call) {
    const int32_t* rows = call.inputs[CombineGradInputs::rows].as<int32_t>();
    const int64_t width = call.inputs[CombineGradInputs::dy].dims.back();
    for (int64_t pair = 0; pair < shape.pairs(); ++pair) {
      const double weight = read_element(call.inputs[CombineGradInputs::weights], pair);
      double product = 0;
      for (int64_t i = 0; i < width; ++i) {
        const double dy = read_element(call.inputs[CombineGradInputs::dy], pair / shape.chosen * width + i);
        const int64_t at = rows[pair] * width + i;
        product += dy * read_element(call.inputs[CombineGradInputs::z], at);
        write_element(call.outputs[CombineGradOutputs::dz], at, weight * dy);
      }
      write_element(call.outputs[CombineGradOutputs::dweights], pair, product);
    }
  });
}

}  // namespace

void register_moe_cpu(CpuKernels& kernels) {
  kernels.add("moe_route", reference_only<make_route>());
  kernels.add("moe_route_grad", reference_only<make_route_grad>());
  kernels.add("moe_dispatch", reference_only<dispatch_kernel>());
  kernels.add("moe_combine", simd_and_reference<combine_simd, combine_reference>());
  kernels.add("moe_combine_grad", simd_and_reference<combine_grad_simd, combine_grad_reference>());
}

}  // namespace headroom
