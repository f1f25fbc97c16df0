// A small op set for the tests of the IR.
#pragma once

#include <array>
#include <string>

#include "base/error.h"
#include "ir/builder.h"

namespace headroom::test {

using Types = std::vector<Type>;

inline void expect_inputs(const Op& op, std::span<const Type> inputs, size_t count) {
  HR_CHECK(inputs.size() == count, "{} takes {} inputs, not {}", op_name(op), count, inputs.size());
}

class TestOp : public Op {
 public:
  OperandNames operands(const Attrs&, size_t inputs) const override { return OperandNames(inputs, "x"); }
};

// (x) -> `count` copies of x; the first may be in x's storage.
class CopiesOp : public TestOp {
 public:
  CopiesOp(const char* name, size_t inputs, size_t outputs) : name_(name), inputs_(inputs), outputs_(outputs) {}
  std::string_view name() const override { return name_; }
  Types infer(std::span<const Type> inputs, const Attrs&) const override {
    expect_inputs(*this, inputs, inputs_);
    for (const Type& type : inputs) HR_CHECK(type == inputs[0], "{} has inputs of two types", name_);
    return Types(outputs_, inputs[0]);
  }

 private:
  const char* name_;
  size_t inputs_;
  size_t outputs_;
};

// () -> f32[rows, cols]; no effect.
class ZerosOp : public TestOp {
 public:
  std::string_view name() const override { return "zeros"; }
  Types infer(std::span<const Type>, const Attrs& attrs) const override {
    return {{DType::f32, {Dim::of(attrs.integer("rows", 4)), Dim::of(attrs.integer("cols", 8))}}};
  }
};

// () -> i32[batch, seq], with the symbols as attributes; reads from the host.
class NextBatchOp : public TestOp {
 public:
  std::string_view name() const override { return "next_batch"; }
  OpKind kind() const override { return OpKind::next_batch; }
  bool has_effect() const override { return true; }
  Types infer(std::span<const Type>, const Attrs& attrs) const override {
    const auto symbol = [&](const char* name) { return Dim::of_symbol(static_cast<SymbolId>(attrs.integer(name))); };
    return {{DType::i32, {symbol("batch"), symbol("seq")}}, {DType::i32, {symbol("batch"), symbol("seq")}}};
  }
};

// (x[..., k], w[n, k]) -> [..., n] of x's dtype
class LinearOp : public TestOp {
 public:
  std::string_view name() const override { return "linear"; }
  Types infer(std::span<const Type> inputs, const Attrs&) const override {
    expect_inputs(*this, inputs, 2);
    HR_CHECK(!inputs[0].shape.empty() && inputs[1].shape.size() == 2 && inputs[0].shape.back() == inputs[1].shape[1],
             "linear has unequal inner dimensions");
    Type out = inputs[0];
    out.shape.pop_back();
    out.shape.push_back(inputs[1].shape[0]);
    return {out};
  }
};

// (ids, table[n, k]) -> ids' shape with k appended
class EmbeddingOp : public TestOp {
 public:
  std::string_view name() const override { return "embedding"; }
  Types infer(std::span<const Type> inputs, const Attrs&) const override {
    expect_inputs(*this, inputs, 2);
    HR_CHECK(inputs[1].shape.size() == 2, "the table has rank {}", inputs[1].shape.size());
    Type out{DType::f32, inputs[0].shape};
    out.shape.push_back(inputs[1].shape[1]);
    return {out};
  }
};

// (target, x) -> target, in place. `update` has an effect, `accumulate` has none.
class InPlaceOp : public TestOp {
 public:
  InPlaceOp(const char* name, bool effect) : name_(name), effect_(effect) {}
  std::string_view name() const override { return name_; }
  bool has_effect() const override { return effect_; }
  std::vector<Alias> aliases(const Attrs&, int) const override { return {{0, 0, true}}; }
  Types infer(std::span<const Type> inputs, const Attrs&) const override {
    expect_inputs(*this, inputs, 2);
    HR_CHECK(inputs[0].shape == inputs[1].shape, "{} has two shapes", name_);
    return {inputs[0]};
  }

 private:
  const char* name_;
  bool effect_;
};

// (x) -> nothing; has an effect
class SinkOp : public TestOp {
 public:
  std::string_view name() const override { return "sink"; }
  bool has_effect() const override { return true; }
  Types infer(std::span<const Type> inputs, const Attrs&) const override {
    expect_inputs(*this, inputs, 1);
    return {};
  }
};

// (x) -> x on the tier of the attribute "tier", and a token; copy_wait(x, token) -> x.
class CopyStartOp : public TestOp {
 public:
  std::string_view name() const override { return "copy_start"; }
  OpKind kind() const override { return OpKind::copy_start; }
  Types infer(std::span<const Type> inputs, const Attrs& attrs) const override {
    expect_inputs(*this, inputs, 1);
    Type out = inputs[0];
    out.tier = attrs.text("tier") == "host" ? Tier::host : Tier::device;
    return {out, {DType::i32, {}}};
  }
};
class CopyWaitOp : public TestOp {
 public:
  std::string_view name() const override { return "copy_wait"; }
  OpKind kind() const override { return OpKind::wait; }
  std::vector<Alias> aliases(const Attrs&, int) const override { return {{0, 0, true}}; }
  Types infer(std::span<const Type> inputs, const Attrs&) const override {
    expect_inputs(*this, inputs, 2);
    return {inputs[0]};
  }
};

// (x) -> x with another dtype. With the attribute "in_place" it must be in x's storage, which is legal only for equal
// bytes.
class CastOp : public TestOp {
 public:
  std::string_view name() const override { return "cast"; }
  OpKind kind() const override { return OpKind::cast; }
  std::vector<Alias> aliases(const Attrs& attrs, int) const override {
    return {{0, static_cast<int>(attrs.integer("alias_input")), attrs.integer("in_place") != 0}};
  }
  Types infer(std::span<const Type> inputs, const Attrs& attrs) const override {
    expect_inputs(*this, inputs, 1);
    const auto dtype = parse_dtype(attrs.text("dtype"));
    HR_CHECK(dtype.has_value(), "cast knows no dtype '{}'", attrs.text("dtype"));
    Type out = inputs[0];
    out.dtype = *dtype;
    return {out};
  }
};

// (a, b) -> one output that would have to be in the storage of both
class MergeOp : public CopiesOp {
 public:
  MergeOp() : CopiesOp("merge", 2, 1) {}
  std::vector<Alias> aliases(const Attrs&, int) const override { return {{0, 0, true}, {0, 1, true}}; }
};

class LoopOp : public TestOp {
 public:
  std::string_view name() const override { return kLoop; }
  OpKind kind() const override { return OpKind::loop; }
  bool has_effect() const override { return true; }
  Types infer(std::span<const Type> inputs, const Attrs&) const override { return Types(inputs.begin(), inputs.end()); }
};

// The op with that name; throws InternalError when there is none.
inline const Op& test_op(std::string_view name) {
  static const CopiesOp scale("scale", 1, 1), relu("relu", 1, 1), add("add", 2, 1), split("split", 1, 2);
  static const ZerosOp zeros;
  static const NextBatchOp next_batch;
  static const LinearOp linear;
  static const EmbeddingOp embedding;
  static const InPlaceOp accumulate("accumulate", false), update("update", true);
  static const SinkOp sink;
  static const CopyStartOp copy_start;
  static const CopyWaitOp copy_wait;
  static const CastOp cast;
  static const MergeOp merge;
  static const LoopOp loop;
  static const std::array<const Op*, 16> all{&scale,     &relu,      &add,        &split,  &zeros, &next_batch,
                                             &linear,    &embedding, &accumulate, &update, &sink,  &copy_start,
                                             &copy_wait, &cast,      &merge,      &loop};
  for (const Op* op : all)
    if (op_name(*op) == name) return *op;
  throw InternalError("no op is named " + std::string(name));
}

}  // namespace headroom::test
