// CUDA kernels of fake quantisation.
#include "base/quantization_grid.h"
#include "ops/cuda/kernel.h"
#include "ops/fake_quantize/cuda_kernels.h"

namespace headroom {
namespace {

cuda::WeightGridArgs weight_grid(const KernelSpec& spec, const ConcreteType& weight) {
  const CodeRange range = code_range(static_cast<int>(spec.attrs.integer("bits")));
  cuda::WeightGridArgs args;
  args.group = spec.attrs.integer("group");
  args.groups = count_of(weight) / args.group;
  args.low = range.low, args.high = range.high;
  return args;
}

std::unique_ptr<CudaKernel> make_round(const KernelSpec& spec, const CudaContext&) {
  return cuda_kernel_of([args = weight_grid(spec, spec.inputs[0]), w = float_type(spec.inputs[0].dtype),
                         y = float_type(spec.outputs[0].dtype)](const KernelCall& call, CudaStream stream) {
    cuda::WeightGridArgs a = args;
    a.weight = call.inputs[0].data;
    a.y = call.outputs[0].data;
    cuda::launch_round_weight(w, y, a, stream);
  });
}

std::unique_ptr<CudaKernel> make_mask(const KernelSpec& spec, const CudaContext&) {
  return cuda_kernel_of([args = weight_grid(spec, spec.inputs[1]), w = float_type(spec.inputs[1].dtype)](
                            const KernelCall& call, CudaStream stream) {
    cuda::WeightGridArgs a = args;
    a.weight = call.inputs[1].data;
    a.gradient = call.outputs[0].as<float>();
    cuda::launch_mask_weight(w, a, stream);
  });
}

cuda::TokenGridArgs token_args(const ConcreteType& x) {
  cuda::TokenGridArgs args;
  args.features = x.dims.back();
  args.tokens = count_of(x) / args.features;
  return args;
}

std::unique_ptr<CudaKernel> make_quantize(const KernelSpec& spec, const CudaContext&) {
  return cuda_kernel_of([args = token_args(spec.inputs[0]), x = float_type(spec.inputs[0].dtype)](
                            const KernelCall& call, CudaStream stream) {
    cuda::TokenGridArgs a = args;
    a.x = call.inputs[0].data;
    a.codes = call.outputs[0].as<int8_t>();
    a.grid = call.outputs[1].as<float>();
    cuda::launch_quantize_tokens(x, a, stream);
  });
}

std::unique_ptr<CudaKernel> make_dequantize(const KernelSpec& spec, const CudaContext&) {
  return cuda_kernel_of([args = token_args(spec.outputs[0]), y = float_type(spec.outputs[0].dtype)](
                            const KernelCall& call, CudaStream stream) {
    cuda::TokenGridArgs a = args;
    a.codes = call.inputs[0].as<int8_t>();
    a.grid = call.inputs[1].as<float>();
    a.y = call.outputs[0].data;
    cuda::launch_dequantize_tokens(y, a, stream);
  });
}

std::unique_ptr<CudaKernel> make_gradient(const KernelSpec& spec, const CudaContext& context) {
  return cuda_kernel_of([count = count_of(spec.inputs[0]), dy = float_type(spec.inputs[0].dtype),
                         dx = float_type(spec.outputs[0].dtype),
                         multiprocessors = context.multiprocessors](const KernelCall& call, CudaStream stream) {
    const cuda::CodeMaskArgs args{call.inputs[0].data, call.inputs[1].as<int8_t>(), call.outputs[0].data, count};
    cuda::launch_mask_codes(dy, dx, args, multiprocessors, stream);
  });
}

}  // namespace

void register_fake_quantize_cuda(CudaKernels& kernels) {
  kernels.add("fake_quantize_weight", one_cuda_kernel<make_round>());
  kernels.add("fake_quantize_weight_grad", one_cuda_kernel<make_mask>());
  kernels.add("quantize_tokens", one_cuda_kernel<make_quantize>());
  kernels.add("dequantize_tokens", one_cuda_kernel<make_dequantize>());
  kernels.add("quantize_tokens_grad", one_cuda_kernel<make_gradient>());
}

}  // namespace headroom
