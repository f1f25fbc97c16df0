// Rules of linear_group: y_i = x w_i^T [+ bias_i], the same as one linear after the other. Attributes as linear's, but
// no residual and no low-rank product. No vjp: programs with a gradient keep the layers separate.
#include <memory>

#include "base/error.h"
#include "ops/linear_group/members.h"
#include "ops/registry.h"

namespace headroom {
namespace {

class LinearGroup final : public Op {
 public:
  std::string_view name() const override { return "linear_group"; }
  OperandNames operands(const Attrs& attrs, size_t inputs) const override {
    const size_t members = group_members(inputs, attrs);
    OperandNames names{"x"};
    names.insert(names.end(), members, "weight");
    names.resize(inputs, "bias");
    return names;
  }
  bool by_rows() const override { return true; }
  Product product() const override { return {ProductPart::output, ProductMatrices::group}; }
  ProductShape product_shape(const OpCall& call) const override {
    const ConcreteType& x = call.inputs[0];
    ProductShape shape{1, 0, x.dims.back()};
    shape.rows = element_count(x.dims) / std::max<int64_t>(1, shape.ins);
    for (const ConcreteType& y : call.outputs) shape.outs += y.dims.back();
    return shape;
  }

  std::vector<Type> infer(std::span<const Type> inputs, const Attrs& attrs) const override {
    HR_CHECK(attrs.integer("residual") == 0 && attrs.integer("low_rank") == 0,
             "linear_group: no residual and no low-rank product is added");
    const size_t members = inputs.empty() ? 0 : group_members(inputs.size(), attrs);
    const size_t each = attrs.integer("bias") != 0 ? 2 : 1;
    HR_CHECK(members >= 1 && members <= kGroupMost && inputs.size() == 1 + members * each,
             "linear_group: {} inputs, bias {}", inputs.size(), attrs.integer("bias"));
    std::vector<Type> outputs;
    for (size_t i = 0; i < members; ++i)
      outputs.push_back(find_op("linear").infer(member_inputs(inputs, attrs, i), attrs).front());
    return outputs;
  }

  // x is read once.
  Work work(const OpCall& call) const override {
    const double again = static_cast<double>(storage_bytes(call.inputs[0]));
    Work work{0, again};
    each_member_call(call, [&](const OpCall& member) {
      const Work one = find_op("linear").work(member);
      work.flops += one.flops, work.bytes += one.bytes - again;
    });
    return work;
  }
  CostClass cost_class() const override { return CostClass::gemm; }
  RecomputeClass recompute_class() const override { return RecomputeClass::linear; }
};

}  // namespace

void register_linear_group_ops(OpRegistry& registry) { registry.add(std::make_unique<LinearGroup>()); }

}  // namespace headroom
