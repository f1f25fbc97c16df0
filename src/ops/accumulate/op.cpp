// Rules of accumulation in place: adding a finished addend to an accumulator, and setting a value to zero.
#include <memory>

#include "ops/registry.h"
#include "ops/stream/operand_rules.h"

namespace headroom {
namespace {

using namespace operand_rules;

class InPlace : public Op {
 public:
  RecomputeClass recompute_class() const override { return RecomputeClass::never; }

 protected:
  void require_wide(const Type& type) const {
    HR_CHECK(type.dtype == DType::f32 || type.dtype == DType::f64, "{}: operands are f32 or f64, not {}", name(),
             dtype_name(type.dtype));
  }
};

// acc' = x (if "accumulate" is "carried", on the loop's first trip), else acc + x
class Accumulate final : public InPlace {
 public:
  std::string_view name() const override { return "accumulate"; }
  OperandNames operands(const Attrs&, size_t) const override { return {"x", "accumulator"}; }

  std::vector<Type> infer(std::span<const Type> inputs, const Attrs& attrs) const override {
    require_inputs(name(), inputs, 2);
    require_accumulate(name(), attrs);
    require_wide(inputs[0]);
    require_type(name(), "the accumulator", inputs[1], inputs[0]);
    return {inputs[1]};
  }
  std::vector<Alias> aliases(const Attrs&, int) const override { return {{0, 1, true}}; }

  Work work(const OpCall& call) const override {
    return {static_cast<double>(element_count(call.inputs[0].dims)),
            3 * static_cast<double>(storage_bytes(call.inputs[0]))};
  }
};

// x' = 0, whatever x was
class ZeroFill final : public InPlace {
 public:
  std::string_view name() const override { return "zero_fill"; }
  OperandNames operands(const Attrs&, size_t) const override { return {"x"}; }

  std::vector<Type> infer(std::span<const Type> inputs, const Attrs&) const override {
    require_inputs(name(), inputs, 1);
    require_wide(inputs[0]);
    return {inputs[0]};
  }
  std::vector<Alias> aliases(const Attrs&, int) const override { return {{0, 0, true}}; }

  // Written, not read.
  Work work(const OpCall& call) const override { return {0, static_cast<double>(storage_bytes(call.outputs[0]))}; }
};

}  // namespace

void register_accumulate_ops(OpRegistry& registry) {
  registry.add(std::make_unique<Accumulate>());
  registry.add(std::make_unique<ZeroFill>());
}

}  // namespace headroom
