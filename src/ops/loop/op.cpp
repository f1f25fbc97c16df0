// The rule of a loop: carried values in, the same values out, in the same storage. The executor runs its body.
#include <memory>

#include "ir/graph.h"
#include "ops/registry.h"

namespace headroom {
namespace {

class Loop final : public Op {
 public:
  std::string_view name() const override { return kLoop; }
  OperandNames operands(const Attrs&, size_t inputs) const override { return OperandNames(inputs, "carried"); }
  OpKind kind() const override { return OpKind::loop; }

  std::vector<Type> infer(std::span<const Type> inputs, const Attrs&) const override {
    return std::vector<Type>(inputs.begin(), inputs.end());
  }

  std::vector<Alias> aliases(const Attrs&, int inputs) const override {
    std::vector<Alias> aliases;
    for (int i = 0; i < inputs; ++i) aliases.push_back({i, i, true});
    return aliases;
  }

  Work work(const OpCall&) const override { return {}; }
  CostClass cost_class() const override { return CostClass::none; }
  RecomputeClass recompute_class() const override { return RecomputeClass::never; }
  bool has_effect() const override { return true; }
};

}  // namespace

void register_loop_ops(OpRegistry& registry) { registry.add(std::make_unique<Loop>()); }

}  // namespace headroom
