// AdamW (Loshchilov & Hutter 2019, Algorithm 2), as torch.optim.AdamW computes it.
#include "base/counter_random.h"
#include "optim/optimizer.h"

namespace headroom {
namespace {

void update(Builder& build, const OptimizerOptions& options, const UpdateInputs& in) {
  Graph& graph = build.graph();
  const std::string name = graph.value(in.parameter).name;
  const Type type{DType::f32, graph.value(in.parameter).type.shape};
  const ValueId first = build.persistent(name + ".exp_avg", type, Role::optimizer);
  const ValueId second = build.persistent(name + ".exp_avg_sq", type, Role::optimizer);
  Attrs attrs{
      {"beta1", options.beta1}, {"beta2", options.beta2}, {"eps", options.epsilon}, {"decay", int64_t{in.decays}}};
  if (graph.value(in.parameter).type.dtype == DType::bf16)
    attrs.set("tensor", static_cast<int64_t>(hash_text(name) >> 1));
  build.append("adamw", {in.parameter, in.gradient, first, second, in.hyper, in.clip, in.copy}, std::move(attrs));
}

}  // namespace

const Optimizer& adamw_optimizer() {
  static constexpr std::string_view kStates[] = {"exp_avg", "exp_avg_sq"};
  static constexpr Optimizer kAdamW{"adamw", kStates, update};
  return kAdamW;
}

}  // namespace headroom
