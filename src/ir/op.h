// What an operation is: one interface per op, implemented in src/ops/<op>/op.cpp. Rules only: no library, no device.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ir/attrs.h"
#include "ir/type.h"

namespace headroom {

class VjpContext;

// May the storage of an output be that of an input? `must`: it is the same storage (in-place update, accumulator).
// `may`: legal when the input dies at this node.
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
enum class CostClass : uint8_t { none, gemm, attention, attention_grad, loss, stream, optimizer, copy, collective };

// How recomputation sees an op: free (views, tables), cheap (elementwise, norms), attention, linear, never (host input,
// updates).
enum class RecomputeClass : uint8_t { cheap, attention, linear, never };

// What the device offers, as far as planning needs to know. Part of the plan's key.
struct DeviceFacts {
  std::string device = "cpu";
  int threads = 1;
  int isa = 0;  // cpu: 2 = AVX2, 512 = AVX-512, 513 = AVX-512 with bf16, 514 = AMX; 0 = reference only; cuda: 10 major
                // + minor
  bool native_bf16 = false;
  int64_t alignment = 64;          // bytes
  int64_t gemm_workspace_cap = 0;  // bytes booked for each matrix product of the library; 0 = ask the op's own rule
};

// The concrete call an op's byte and work rules look at.
struct OpCall {
  std::span<const ConcreteType> inputs;
  std::span<const ConcreteType> outputs;
  const Attrs& attrs;
};

class Op {
 public:
  virtual ~Op() = default;

  virtual std::string_view name() const = 0;

  // Types of the outputs. Throws InternalError naming the rule that `inputs` or `attrs` break.
  virtual std::vector<Type> infer(std::span<const Type> inputs, const Attrs& attrs) const = 0;

  virtual std::vector<Alias> aliases(const Attrs& attrs, int inputs) const { return {}; }

  // Bytes of scratch the CPU or GPU kernel needs for this call, library workspace included: booked at plan time,
  // granted at run time.
  virtual int64_t scratch_bytes(const OpCall& call, const DeviceFacts& facts) const { return 0; }

  // Default: no flops, every input and output moved once.
  virtual Work work(const OpCall& call) const;

  virtual CostClass cost_class() const { return CostClass::stream; }
  virtual RecomputeClass recompute_class() const { return RecomputeClass::cheap; }

  // Effects beyond the outputs (host calls, updates of persistent storage): never removed, duplicated or reordered.
  virtual bool has_effect() const { return false; }

  // Appends the backward nodes. Default: throws, the op is not differentiable.
  virtual void vjp(VjpContext& context) const;

  // Narrow (bf16-mixed): inputs that the precision pass casts to the compute dtype. Default none: the op stays in fp32.
  virtual std::vector<int> narrow_inputs(const Attrs& attrs) const { return {}; }
  // Inputs that may be f32 beside a bf16 first input: kernels round them, to the numbers that a cast would give.
  virtual std::vector<int> rounded_inputs() const { return {}; }
  // Narrow (bf16-mixed): the value that attribute "dtype" takes, "bf16" where the output may be kept narrow; empty when
  // the op has no such attribute and follows its inputs.
  virtual std::string_view narrow_dtype(const Attrs& attrs) const { return {}; }
};

}  // namespace headroom
