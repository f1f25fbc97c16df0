// Rules of the ops that derive the shape of sequences from their token ids: lengths without padding, the shift of
// positions by padding, zero ids, and the labels that positions predict.
#include <memory>

#include "ops/registry.h"
#include "ops/stream/operand_rules.h"

namespace headroom {
namespace {

using namespace operand_rules;

const Type& require_ids(std::string_view op, std::span<const Type> inputs) {
  require_inputs(op, inputs, 1);
  HR_CHECK(inputs[0].dtype == DType::i32 && inputs[0].shape.size() == 2, "{}: ids are i32[batch, seq]", op);
  return inputs[0];
}

// ids[b, s] -> i32[b]: tokens up to the last one that is not attribute "pad"; at least 1.
class SequenceLengths final : public Op {
 public:
  std::string_view name() const override { return "sequence_lengths"; }
  OperandNames operands(const Attrs&, size_t) const override { return {"ids"}; }
  std::vector<Type> infer(std::span<const Type> inputs, const Attrs& attrs) const override {
    HR_CHECK(attrs.has("pad"), "sequence_lengths: no padding id");
    return {computed(Type{DType::i32, {require_ids(name(), inputs).shape[0]}}, DType::i32)};
  }
};

// ids[b, s] -> i32[b, s]: the starts that position_embedding subtracts so that positions count only tokens other than
// attribute "pad". For a token, the number of pads before it; for a pad, s + 1, so that its position is -1.
class PaddingStarts final : public Op {
 public:
  std::string_view name() const override { return "padding_starts"; }
  OperandNames operands(const Attrs&, size_t) const override { return {"ids"}; }
  std::vector<Type> infer(std::span<const Type> inputs, const Attrs& attrs) const override {
    HR_CHECK(attrs.has("pad"), "padding_starts: no padding id");
    return {computed(require_ids(name(), inputs), DType::i32)};
  }
};

// ids[b, s] -> i32[b, s] of zeros: the token types of single segments.
class ZeroIds final : public Op {
 public:
  std::string_view name() const override { return "zero_ids"; }
  OperandNames operands(const Attrs&, size_t) const override { return {"ids"}; }
  std::vector<Type> infer(std::span<const Type> inputs, const Attrs&) const override {
    return {computed(require_ids(name(), inputs), DType::i32)};
  }
};

// labels[b, s] -> i32[b, s]: for each position the label of the next one, which it predicts; -100 at the end of a row.
class NextLabels final : public Op {
 public:
  std::string_view name() const override { return "next_labels"; }
  OperandNames operands(const Attrs&, size_t) const override { return {"labels"}; }
  std::vector<Type> infer(std::span<const Type> inputs, const Attrs&) const override {
    return {computed(require_ids(name(), inputs), DType::i32)};
  }
};

}  // namespace

void register_sequence_ops(OpRegistry& registry) {
  registry.add(std::make_unique<SequenceLengths>());
  registry.add(std::make_unique<PaddingStarts>());
  registry.add(std::make_unique<ZeroIds>());
  registry.add(std::make_unique<NextLabels>());
}

}  // namespace headroom
