// Rules of encode_rows and decode_rows: a tensor as 8-bit codes with a scale per row, and back.
#include <memory>

#include "ops/registry.h"
#include "ops/stream/operand_rules.h"

namespace headroom {
namespace {

using namespace operand_rules;

class RowCodes : public Op {
 public:
  OperandNames operands(const Attrs&, size_t) const override { return {"x"}; }
  RecomputeClass recompute_class() const override { return RecomputeClass::never; }
  Work work(const OpCall& call) const override {
    return {0, static_cast<double>(storage_bytes(call.inputs[0]) + storage_bytes(call.outputs[0]))};
  }

 protected:
  // Blocks are rows.
  Storage row_storage(const Type& type) const {
    HR_CHECK(!type.shape.empty() && !type.shard, "{}: x is a whole tensor of rows", name());
    const int64_t row = constant_dim(name(), "the length of a row", type.shape.back());
    return Storage{static_cast<int32_t>(row), 8, DType::f32, CodeTable::integer};
  }
};

class EncodeRows final : public RowCodes {
 public:
  std::string_view name() const override { return "encode_rows"; }
  std::vector<Type> infer(std::span<const Type> inputs, const Attrs&) const override {
    require_inputs(name(), inputs, 1);
    require_float(name(), "x", inputs[0]);
    Type codes = computed(inputs[0], inputs[0].dtype);
    codes.storage = row_storage(codes);
    return {codes};
  }
};

class DecodeRows final : public RowCodes {
 public:
  std::string_view name() const override { return "decode_rows"; }
  std::vector<Type> infer(std::span<const Type> inputs, const Attrs&) const override {
    HR_CHECK(inputs.size() == 1, "decode_rows: {} inputs", inputs.size());
    require_float(name(), "x", inputs[0]);
    HR_CHECK(inputs[0].storage == row_storage(inputs[0]), "decode_rows: x is 8-bit codes with a scale per row");
    return {computed(inputs[0], inputs[0].dtype)};
  }
};

}  // namespace

void register_row_codes_ops(OpRegistry& registry) {
  registry.add(std::make_unique<EncodeRows>());
  registry.add(std::make_unique<DecodeRows>());
}

}  // namespace headroom
