// What an operation is: one interface per op, implemented in src/ops/<op>/op.cpp. Rules only: no library, no device.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ir/attrs.h"
#include "ir/capabilities.h"
#include "ir/type.h"

namespace headroom {

class VjpContext;

// Whether an output may use the storage of an input. `must`: it does (in-place update, accumulator). `may`: it can if
// the input is not read after this node.
struct Alias {
  int output = 0;
  int input = 0;
  bool must = false;
};

// Work of one call: floating-point operations and bytes moved to or from memory.
struct Work {
  double flops = 0;
  double bytes = 0;
};

// The row of the profile that predicts an op's time.
enum class CostClass : uint8_t {
  none,
  gemm,
  attention,
  attention_grad,
  loss,
  loss_grad,
  logits,  // a product that no pass rewrites, and a softmax
  stream,
  optimizer,
  copy,
  collective
};
inline bool is_loss(CostClass cost) { return cost == CostClass::loss || cost == CostClass::loss_grad; }

// What an op is to the code that rewrites, places or runs graphs. A gradient has the kind of its op if noted below.
enum class OpKind : uint8_t {
  other,             // a function of its operands without special treatment
  loop,              // runs its body
  next_batch,        // brings the micro-batch
  allocate,          // storage without contents
  host_stage,        // scratch for loading and saving
  copy_start,        // starts a copy between tiers; the last output is its token
  collective_start,  // starts a collective; the last output is its token
  wait,              // completes a started transfer: (value, token) -> value
  cast,              // another element type
  sum,               // of two tensors of one type
  norm,              // and its gradient
  activation,        // and its gradient
  rotation,          // of pairs of channels, by position
  lookup,            // of rows of operand "table", by ids or positions
  router,            // chooses each token's experts from its operand "logits"
  squared_norm,      // adds the squares of "x" to "accumulator"
  update,            // an optimizer's: "weight", "gradient", states, "hyper", "clip" and, if it refreshes one, "copy"
  weight_rounding,   // of a weight to a grid; its gradient is the weight's. Recomputed instead of kept
  decoding,          // of values kept as codes; recomputed instead of kept
  row_lengths,       // of operand "weight" plus an adapter's product; the weight may be codes
};
inline bool starts_transfer(OpKind kind) { return kind == OpKind::copy_start || kind == OpKind::collective_start; }
inline bool is_transfer(OpKind kind) { return starts_transfer(kind) || kind == OpKind::wait; }

// Which of a linear layer's products an op computes, and with how many matrices.
enum class ProductPart : uint8_t { none, output, input_gradient, weight_gradient };
enum class ProductMatrices : uint8_t { one, group, experts };  // group: of layers that read one input
struct Product {
  ProductPart part = ProductPart::none;
  ProductMatrices matrices = ProductMatrices::one;

  bool operator==(const Product&) const = default;
};

// rows x ins times ins x outs: of one product, of all members of a group together, or of an expert's mean share.
struct ProductShape {
  int64_t rows = 1;
  int64_t outs = 1;
  int64_t ins = 1;
};

// The names of a call's inputs, in order. Members of a list (the matrices of a group) share one name.
using OperandNames = std::vector<std::string_view>;

// How recomputation treats an op: cheap (elementwise, norms), attention, linear, never (host input, updates).
enum class RecomputeClass : uint8_t { cheap, attention, linear, never };

// What the device offers, as far as planning needs it. Part of the plan's key.
struct DeviceFacts {
  std::string device = "cpu";  // the name of its backend (ops/backend.h)
  int threads = 1;
  Capabilities capabilities;  // none: reference kernels only
  bool native_bf16 = false;
  int64_t alignment = 64;          // bytes
  int64_t gemm_workspace_cap = 0;  // bytes booked for each matrix product of the library; 0: by the op's own rule

  // Whether the device is a CPU: then its arena is in the host's memory and one budget covers both. Otherwise the
  // device has its own memory, behind a bus.
  bool is_cpu() const { return device == "cpu"; }
  bool has_bf16_tiles() const { return capabilities.has(kBf16Tiles); }
};

// A concrete call, for the byte and work rules of its op.
struct OpCall {
  std::span<const ConcreteType> inputs;
  std::span<const ConcreteType> outputs;
  const Attrs& attrs;
};

// The two factors of a product or of a loss's, its first operands: rows (x or dy) and the matrix, of a group the first
// one; of a weight's gradient x and dy.
struct Factors {
  const ConcreteType& left;
  const ConcreteType& right;
};
inline Factors factors(const OpCall& call) { return {call.inputs[0], call.inputs[1]}; }

class Op {
 public:
  virtual ~Op() = default;

  // Names the inputs of a legal call with `inputs` of them.
  virtual OperandNames operands(const Attrs& attrs, size_t inputs) const = 0;

  // Types of the outputs. Throws InternalError naming the rule that `inputs` or `attrs` break.
  virtual std::vector<Type> infer(std::span<const Type> inputs, const Attrs& attrs) const = 0;

  // Which outputs must or may use the storage of an input.
  virtual std::vector<Alias> aliases(const Attrs& attrs, int inputs) const { return {}; }

  // Bytes of the stage through which the host fills or reads tensors, booked as scratch. Scratch that kernels need is
  // up to their backend (scratch_bytes() of ops/backend.h).
  virtual int64_t stage_bytes(const OpCall& call) const { return 0; }

  // Default: no flops; every input and output is moved once.
  virtual Work work(const OpCall& call) const;

  virtual OpKind kind() const { return OpKind::other; }
  virtual Product product() const { return {}; }
  // The shape of a call's product, for ops that compute one.
  virtual ProductShape product_shape(const OpCall& call) const { return {}; }
  virtual CostClass cost_class() const { return CostClass::stream; }
  // The key of its own rate in a profile, among those of CostClass::stream and copy, if one was measured.
  virtual std::string_view rate_key() const { return name(); }
  virtual RecomputeClass recompute_class() const { return RecomputeClass::cheap; }

  // True if the result depends on all rows of a batch together, so that it is not a sum over micro-batches.
  virtual bool spans_batch() const { return false; }
  // Turns a training call (its inputs by value id and its attributes) into one without dropout or load balancing.
  virtual void leave_training(std::vector<int32_t>& inputs, Attrs& attrs) const {}
  // True if the only result is the first input, unchanged.
  virtual bool is_identity(const Attrs& attrs) const { return false; }
  // Packed rows: an op whose result depends on a token's position takes, after its other inputs, i32[batch, seq] with
  // the position at which each token's segment begins. Returns true for such ops and sets their attributes accordingly.
  virtual bool take_segments(Attrs& attrs) const { return false; }

  // True if the op works on token rows, the leading dimensions [batch, seq] of tensors, one by one: a row of a result
  // depends on the same row of the operands that have rows and on all of those that have none (weights), and a result
  // without rows is a sum over rows, added to its accumulator as attribute "accumulate", "accumulate_..." or
  // "..._accumulate" says. Such an op may process the rows in parts. For a loss this assumes attribute "shift" 0, so
  // that its labels are those of its rows.
  virtual bool by_rows() const { return false; }

  // The operand whose rows calls on slices (ir/row_slice.h) may take one slice after another, each adding to what the
  // call before it made; empty if the op is not such a sum. If its result is not in place, it is the operand "onto" of
  // every call but the first.
  virtual std::string_view summed_slices() const { return {}; }

  // For an update that may process the weight in parts: every part except the last is a multiple of this number of
  // elements. A part's new weight and states depend only on the same part of weight, gradient and states
  // (ir/row_slice.h). 0: the weight is updated as a whole.
  virtual int64_t update_grain() const { return 0; }

  // Effects beyond the outputs (host calls, updates of persistent storage): never removed, duplicated or reordered.
  virtual bool has_effect() const { return false; }

  // Appends the backward nodes. Default: throws, as the op is not differentiable.
  virtual void vjp(VjpContext& context) const;

  // Narrow (bf16-mixed): inputs that the precision pass casts to the compute dtype. Default: none, the op stays in f32.
  virtual std::vector<int> narrow_inputs(const Attrs& attrs) const { return {}; }
  // Inputs that may be f32 when the first input is bf16: kernels round them, with the same result as a cast.
  virtual std::vector<int> rounded_inputs() const { return {}; }
  // Narrow (bf16-mixed): the value for attribute "dtype", "bf16" if the output may be kept narrow; empty if the op has
  // no such attribute and follows its inputs.
  virtual std::string_view narrow_dtype(const Attrs& attrs) const { return {}; }
  // True if attribute "narrow" 1 adds a last output: the first output, if it is f32, rounded to bf16.
  virtual bool writes_narrow_copy() const { return false; }

 protected:
  // Unique among all ops: its name in texts (op_name), the key of its kernels (ops/kernel.h) and, unless it gives
  // another, of its rate.
  virtual std::string_view name() const = 0;
  friend std::string_view op_name(const Op& op);
};

// The op's name for texts and messages. Rules never compare it; they use traits and operands by name. Outside src/ops
// the files that tools/check_op_names.py lists may use it.
std::string_view op_name(const Op& op);

// The place of the operand `name` among the `inputs` inputs of a call; `inputs` if it has none of that name.
size_t operand_place(const Op& op, const Attrs& attrs, size_t inputs, std::string_view name);

}  // namespace headroom
