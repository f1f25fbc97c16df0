// What an op's vjp rule may ask of autodiff. One context per differentiated node; implemented in src/autodiff.
#pragma once

#include "ir/builder.h"

namespace headroom {

class VjpContext {
 public:
  virtual ~VjpContext() = default;

  virtual Builder& build() = 0;
  virtual const Node& node() const = 0;
  ValueId input(int i) const { return node().inputs.at(static_cast<size_t>(i)); }
  ValueId output(int i) const { return node().outputs.at(static_cast<size_t>(i)); }
  const Attrs& attrs() const { return node().attrs; }

  // The cotangent of an output, kNone when nothing downstream depends on it.
  virtual ValueId cotangent(int output) = 0;

  // True when the cotangent of input `i` is needed (an activation on a path to a trained parameter).
  virtual bool wants(int input) const = 0;
  // The cotangent gathered so far for input `i`, for rules that add into it (`set_total`); kNone when there is none
  // yet.
  virtual ValueId addend(int input) = 0;
  // Adds a contribution (an `add` node joins it with what was gathered).
  virtual void contribute(int input, ValueId cotangent) = 0;
  // The new total, `addend(input)` included.
  virtual void set_total(int input, ValueId cotangent) = 0;

  // True when input `i` is a trained parameter or a cast of one: its gradient goes to an fp32 accumulator.
  virtual bool trains(int input) const = 0;
  // The parameter's accumulator as it stands (an f32 value of the parameter's shape).
  virtual ValueId accumulator(int input) = 0;
  // "carried" for the first contribution of a micro-batch (the first trip of the loop overwrites), else "always".
  virtual const char* accumulate(int input) const = 0;
  virtual void set_accumulator(int input, ValueId updated) = 0;

  // The vjp computes output `i` of the forward node again (a loss fused with its gradient): uses of the forward node's
  // output become `replacement`, and the forward node is dropped when nothing else needs it.
  virtual void replace_output(int output, ValueId replacement) = 0;
};

}  // namespace headroom
