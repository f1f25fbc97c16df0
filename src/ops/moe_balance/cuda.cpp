// CUDA kernels of the experts' load-balancing loss.
#include "ops/cuda/kernel.h"
#include "ops/moe/shape.h"
#include "ops/moe_balance/cuda_kernels.h"
#include "ops/moe_balance/cuda_scratch.h"
#include "ops/stream/scalar_access.h"

namespace headroom {
namespace {

// Sizes of logits[batch, seq, experts].
cuda::BalanceTokens tokens_of(const ConcreteType& logits) {
  cuda::BalanceTokens of;
  of.tokens = logits.dims[0] * logits.dims[1];
  of.sequence = logits.dims[1];
  of.experts = static_cast<int32_t>(logits.dims[2]);
  return of;
}

std::unique_ptr<CudaKernel> make_begin(const KernelSpec& spec, const CudaContext& context) {
  return cuda_kernel_of(
      [bytes = storage_bytes(spec.outputs[0]), services = context.services](const KernelCall& call, CudaStream stream) {
        services->fill(call.outputs[0].data, 0, bytes, stream);
      });
}

std::unique_ptr<CudaKernel> make_balance(const KernelSpec& spec, const CudaContext&) {
  cuda::BalanceArgs args;
  args.of = tokens_of(spec.inputs[BalanceInputs::logits]);
  args.chosen = static_cast<int32_t>(routed_shape(spec.inputs[BalanceInputs::rows]).chosen);
  args.parts = cuda_balance_parts(args.of.tokens);
  HR_CHECK(spec.scratch_bytes >= cuda_balance_scratch(args.of.tokens, args.of.experts),
           "moe_balance: {} bytes of scratch", spec.scratch_bytes);
  return cuda_kernel_of(
      [args, type = float_type(spec.inputs[BalanceInputs::logits].dtype)](const KernelCall& call, CudaStream stream) {
        cuda::BalanceArgs own = args;
        own.of.logits = call.inputs[BalanceInputs::logits].data;
        own.rows = call.inputs[BalanceInputs::rows].as<int32_t>();
        own.offsets = call.inputs[BalanceInputs::offsets].as<int32_t>();
        own.of.lengths = call.inputs[BalanceInputs::lengths].as<int32_t>();
        own.before = call.inputs[BalanceInputs::sums].as<float>();
        own.after = call.outputs[0].as<float>();
        own.sums_of_parts = reinterpret_cast<float*>(call.scratch.data());
        cuda::launch_balance(type, own, stream);
      });
}

std::unique_ptr<CudaKernel> make_balance_grad(const KernelSpec& spec, const CudaContext&) {
  return cuda_kernel_of(
      [of = tokens_of(spec.inputs[BalanceGradInputs::logits]),
       type = float_type(spec.inputs[BalanceGradInputs::logits].dtype)](const KernelCall& call, CudaStream stream) {
        cuda::BalanceTokens own = of;
        own.logits = call.inputs[BalanceGradInputs::logits].data;
        own.lengths = call.inputs[BalanceGradInputs::lengths].as<int32_t>();
        cuda::launch_balance_grad(type, own, call.inputs[BalanceGradInputs::dsums].as<float>(), call.outputs[0].data,
                                  stream);
      });
}

cuda::BalanceLossArgs loss_args(const KernelSpec& spec) {
  cuda::BalanceLossArgs args;
  args.experts = static_cast<int32_t>(experts_of_balance(spec.inputs[BalanceLossInputs::sums].dims[0]));
  args.count = count_of(spec.inputs[BalanceLossInputs::labels]);
  args.sequence = spec.inputs[BalanceLossInputs::labels].dims[1];
  args.coefficient = spec.attrs.real("coefficient");
  return args;
}

std::unique_ptr<CudaKernel> make_loss(const KernelSpec& spec, const CudaContext&) {
  return cuda_kernel_of(
      [args = loss_args(spec), length = count_of(spec.outputs[0]),
       accumulate = std::string(spec.attrs.text("accumulate", "always"))](const KernelCall& call, CudaStream stream) {
        cuda::BalanceLossArgs own = args;
        own.sums = call.inputs[BalanceLossInputs::sums].as<float>();
        own.labels = call.inputs[BalanceLossInputs::labels].as<int32_t>();
        cuda::launch_balance_loss(own, call.outputs[0].as<double>(), length, overwrites(accumulate, call.trip), stream);
      });
}

std::unique_ptr<CudaKernel> make_loss_grad(const KernelSpec& spec, const CudaContext&) {
  return cuda_kernel_of([args = loss_args(spec)](const KernelCall& call, CudaStream stream) {
    cuda::BalanceLossArgs own = args;
    own.sums = call.inputs[BalanceLossGradInputs::sums].as<float>();
    own.labels = call.inputs[BalanceLossGradInputs::labels].as<int32_t>();
    cuda::launch_balance_loss_grad(own, call.inputs[BalanceLossGradInputs::scale].as<float>(),
                                   call.outputs[0].as<float>(), stream);
  });
}

}  // namespace

void register_moe_balance_cuda(CudaKernels& kernels) {
  kernels.add("moe_balance_begin", one_cuda_kernel<make_begin>());
  kernels.add("moe_balance", one_cuda_kernel<make_balance>());
  kernels.add("moe_balance_grad", one_cuda_kernel<make_balance_grad>());
  kernels.add("moe_balance_loss", one_cuda_kernel<make_loss>());
  kernels.add("moe_balance_loss_grad", one_cuda_kernel<make_loss_grad>());
}

}  // namespace headroom
