// Rules of the ops that reserve space in the arena or call the host: the micro-batch, gradient accumulators, staging
// space.
#include <charconv>
#include <memory>

#include "ir/tier_bytes.h"
#include "ops/registry.h"
#include "ops/stream/operand_rules.h"

namespace headroom {
namespace {

using namespace operand_rules;

class HostOp : public Op {
 public:
  Work work(const OpCall&) const override { return {}; }
  CostClass cost_class() const override { return CostClass::none; }
  RecomputeClass recompute_class() const override { return RecomputeClass::never; }
};

// The token ids and labels of the current micro-batch. With attribute "types" 1, then the types of the tokens (0, or 1
// in the second text of a pair); with "lengths" 1, then the number of tokens of each row before its padding,
// i32[batch]; with "segments" 1, last, the position in its sequence at which each token's packed row begins. Dimension
// d is the symbol in attribute "<d>_symbol", or the constant in attribute "<d>".
class NextBatch final : public HostOp {
 public:
  std::string_view name() const override { return "next_batch"; }
  OperandNames operands(const Attrs&, size_t) const override { return {}; }
  OpKind kind() const override { return OpKind::next_batch; }

  std::vector<Type> infer(std::span<const Type> inputs, const Attrs& attrs) const override {
    require_inputs(name(), inputs, 0);
    const Type ids{DType::i32, {dim(attrs, "batch"), dim(attrs, "seq")}};
    std::vector<Type> outputs{ids, ids};
    if (flag(name(), attrs, "types")) outputs.push_back(ids);
    if (flag(name(), attrs, "lengths")) outputs.push_back(Type{DType::i32, {ids.shape[0]}});
    if (flag(name(), attrs, "segments")) outputs.push_back(ids);
    return outputs;
  }

  Work work(const OpCall& call) const override { return Op::work(call); }
  CostClass cost_class() const override { return CostClass::stream; }
  bool has_effect() const override { return true; }

 private:
  static Dim dim(const Attrs& attrs, const std::string& which) {
    const int64_t symbol = attrs.integer(which + "_symbol", -1);
    if (symbol >= 0) {
      HR_CHECK(symbol < int64_t{1} << 31, "next_batch: {}_symbol is {}", which, symbol);
      return Dim::of_symbol(static_cast<SymbolId>(symbol));
    }
    HR_CHECK(attrs.integer(which) >= 1, "next_batch: {} is {}", which, attrs.integer(which));
    return Dim::of(attrs.integer(which));
  }
};

// A value without contents. "dims" are its dimensions, separated by commas; "shard_axis" and "shard_parts" make it one
// shard of such a value; "tier" is device (default), host or disk.
class Allocate final : public HostOp {
 public:
  std::string_view name() const override { return "allocate"; }
  OperandNames operands(const Attrs&, size_t) const override { return {}; }
  OpKind kind() const override { return OpKind::allocate; }

  std::vector<Type> infer(std::span<const Type> inputs, const Attrs& attrs) const override {
    require_inputs(name(), inputs, 0);
    const std::optional<DType> dtype = parse_dtype(attrs.text("dtype"));
    HR_CHECK(dtype, "allocate: no element type '{}'", attrs.text("dtype"));
    Type type{*dtype, parse_dims(attrs.text("dims"))};
    const std::optional<Tier> tier = parse_tier(attrs.text("tier", "device"));
    HR_CHECK(tier, "allocate: no tier '{}'", attrs.text("tier"));
    type.tier = *tier;
    const int64_t parts = attrs.integer("shard_parts", 1);
    const int64_t axis = attrs.integer("shard_axis");
    HR_CHECK(parts >= 1 && parts <= 1 << 20 && axis >= 0 && axis < static_cast<int64_t>(type.shape.size()),
             "allocate: {} shards along axis {}", parts, axis);
    if (parts > 1) type.shard = ShardSpec{static_cast<int32_t>(axis), static_cast<int32_t>(parts)};
    return {type};
  }

 private:
  static std::vector<Dim> parse_dims(std::string_view text) {
    constexpr int64_t kMost = int64_t{1} << 48;  // elements
    std::vector<Dim> dims;
    int64_t count = 1;
    const char* at = text.data();
    const char* const end = at + text.size();
    while (true) {
      int64_t dim = 0;
      const auto [rest, error] = std::from_chars(at, end, dim);
      HR_CHECK(error == std::errc{} && dim >= 1 && dim <= kMost / count, "allocate: dims '{}'", text);
      count *= dim;
      dims.push_back(Dim::of(dim));
      if (rest == end) return dims;
      HR_CHECK(*rest == ',' && dims.size() < 8, "allocate: dims '{}'", text);
      at = rest + 1;
    }
  }
};

// Reserves "bytes" of scratch while the runtime loads or saves.
class HostStage final : public HostOp {
 public:
  std::string_view name() const override { return "host_stage"; }
  OperandNames operands(const Attrs&, size_t) const override { return {}; }
  OpKind kind() const override { return OpKind::host_stage; }

  std::vector<Type> infer(std::span<const Type> inputs, const Attrs& attrs) const override {
    require_inputs(name(), inputs, 0);
    HR_CHECK(attrs.integer("bytes") >= 0, "host_stage: {} bytes", attrs.integer("bytes"));
    return {};
  }
  int64_t stage_bytes(const OpCall& call) const override { return call.attrs.integer("bytes"); }
  bool has_effect() const override { return true; }
};

}  // namespace

void register_host_ops(OpRegistry& registry) {
  registry.add(std::make_unique<NextBatch>());
  registry.add(std::make_unique<Allocate>());
  registry.add(std::make_unique<HostStage>());
}

}  // namespace headroom
