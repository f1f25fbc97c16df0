// CUDA kernels of the ops that send tokens to experts and collect the results.
#include "ops/cuda/kernel.h"
#include "ops/moe/cuda_kernels.h"
#include "ops/moe/cuda_scratch.h"
#include "ops/moe/operands.h"
#include "ops/moe/shape.h"

namespace headroom {
namespace {

static_assert(kCudaRoutePairs == cuda::kRoutePairs);

std::unique_ptr<CudaKernel> make_route(const KernelSpec& spec, const CudaContext&) {
  const RoutedShape shape = routed_shape(spec.outputs[RouteOutputs::rows]);
  cuda::RouteArgs args;
  args.tokens = shape.tokens;
  args.chosen = static_cast<int32_t>(shape.chosen);
  args.experts = static_cast<int32_t>(spec.inputs[0].dims.back());
  args.normalised = spec.attrs.integer("normalised") != 0;
  HR_CHECK(spec.scratch_bytes >= cuda_route_scratch(shape, args.experts), "moe_route: {} bytes of scratch",
           spec.scratch_bytes);
  return cuda_kernel_of([args, pairs = shape.pairs(), type = float_type(spec.inputs[0].dtype)](const KernelCall& call,
                                                                                               CudaStream stream) {
    cuda::RouteArgs own = args;
    own.logits = call.inputs[0].data;
    own.weights = call.outputs[RouteOutputs::weights].as<float>();
    own.rows = call.outputs[RouteOutputs::rows].as<int32_t>();
    own.offsets = call.outputs[RouteOutputs::offsets].as<int32_t>();
    own.expert_of = reinterpret_cast<int32_t*>(call.scratch.data());
    own.counts = own.expert_of + pairs;
    cuda::launch_route(type, own, stream);
  });
}

std::unique_ptr<CudaKernel> make_route_grad(const KernelSpec& spec, const CudaContext&) {
  const RoutedShape shape = routed_shape(spec.inputs[RouteGradInputs::rows]);
  cuda::RouteGradArgs args;
  args.tokens = shape.tokens;
  args.chosen = static_cast<int32_t>(shape.chosen);
  args.experts = static_cast<int32_t>(spec.inputs[RouteGradInputs::logits].dims.back());
  args.normalised = spec.attrs.integer("normalised") != 0;
  return cuda_kernel_of(
      [args, type = float_type(spec.inputs[RouteGradInputs::logits].dtype)](const KernelCall& call, CudaStream stream) {
        cuda::RouteGradArgs own = args;
        own.logits = call.inputs[RouteGradInputs::logits].data;
        own.dweights = call.inputs[RouteGradInputs::dweights].as<float>();
        own.rows = call.inputs[RouteGradInputs::rows].as<int32_t>();
        own.offsets = call.inputs[RouteGradInputs::offsets].as<int32_t>();
        own.dlogits = call.outputs[0].data;
        cuda::launch_route_grad(type, own, stream);
      });
}

cuda::CombineArgs combine_args(const ConcreteType& rows, int64_t width) {
  const RoutedShape shape = routed_shape(rows);
  cuda::CombineArgs args;
  args.tokens = shape.tokens;
  args.chosen = static_cast<int32_t>(shape.chosen);
  args.width = width;
  return args;
}

std::unique_ptr<CudaKernel> make_dispatch(const KernelSpec& spec, const CudaContext&) {
  return cuda_kernel_of(
      [args = combine_args(spec.inputs[DispatchInputs::rows], spec.inputs[DispatchInputs::x].dims.back()),
       type = float_type(spec.inputs[DispatchInputs::x].dtype)](const KernelCall& call, CudaStream stream) {
        cuda::CombineArgs own = args;
        own.y = call.outputs[0].data;
        own.z = call.inputs[DispatchInputs::x].data;
        own.rows = call.inputs[DispatchInputs::rows].as<int32_t>();
        cuda::launch_dispatch(type, own, stream);
      });
}

std::unique_ptr<CudaKernel> make_combine(const KernelSpec& spec, const CudaContext&) {
  return cuda_kernel_of(
      [args = combine_args(spec.inputs[CombineInputs::rows], spec.inputs[CombineInputs::z].dims.back()),
       weighted = spec.attrs.integer("weighted") != 0, residual = spec.attrs.integer("residual") != 0,
       z_type = float_type(spec.inputs[CombineInputs::z].dtype),
       y_type = float_type(spec.outputs[0].dtype)](const KernelCall& call, CudaStream stream) {
        cuda::CombineArgs own = args;
        own.z = call.inputs[CombineInputs::z].data;
        own.rows = call.inputs[CombineInputs::rows].as<int32_t>();
        if (weighted) own.weights = call.inputs[CombineInputs::weights].as<float>();
        if (residual) own.residual = call.inputs.back().data;
        own.y = call.outputs[0].data;
        cuda::launch_combine(z_type, y_type, own, stream);
      });
}

std::unique_ptr<CudaKernel> make_combine_grad(const KernelSpec& spec, const CudaContext&) {
  return cuda_kernel_of(
      [args = combine_args(spec.inputs[CombineGradInputs::rows], spec.inputs[CombineGradInputs::dy].dims.back()),
       z_type = float_type(spec.inputs[CombineGradInputs::z].dtype),
       dy_type = float_type(spec.inputs[CombineGradInputs::dy].dtype)](const KernelCall& call, CudaStream stream) {
        cuda::CombineArgs own = args;
        own.dy = call.inputs[CombineGradInputs::dy].data;
        own.z = call.inputs[CombineGradInputs::z].data;
        own.rows = call.inputs[CombineGradInputs::rows].as<int32_t>();
        own.weights = call.inputs[CombineGradInputs::weights].as<float>();
        own.dz = call.outputs[CombineGradOutputs::dz].data;
        own.dweights = call.outputs[CombineGradOutputs::dweights].as<float>();
        cuda::launch_combine_grad(z_type, dy_type, own, stream);
      });
}

}  // namespace

void register_moe_cuda(CudaKernels& kernels) {
  kernels.add("moe_route", one_cuda_kernel<make_route>());
  kernels.add("moe_route_grad", one_cuda_kernel<make_route_grad>());
  kernels.add("moe_dispatch", one_cuda_kernel<make_dispatch>());
  kernels.add("moe_combine", one_cuda_kernel<make_combine>());
  kernels.add("moe_combine_grad", one_cuda_kernel<make_combine_grad>());
}

}  // namespace headroom
