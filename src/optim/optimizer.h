// Optimizers as IR: what a user may set, which states a parameter has, which scalars a step has, and the nodes that
// update a parameter. One file per optimizer, src/optim/methods/<name>.cpp, which CMake registers.
#pragma once

#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ir/builder.h"
#include "optim/settings.h"
#include "optim/step_scalars.h"

namespace headroom {

// What a parameter is to an optimizer: a matrix that is multiplied, a table that is looked up (of a vocabulary or of
// positions; it may be the head too), a head of its own, or a vector (norms, biases).
enum class ParameterKind : uint8_t { matrix, embedding, head, vector };

// A trained weight. `name` and `type` are those of the value that is updated.
struct Parameter {
  ValueId weight = kNone;
  ParameterKind kind = ParameterKind::matrix;
  // Weight decay is for all but vectors.
  bool decays() const { return kind != ParameterKind::vector; }
};

// A tensor that an optimizer keeps for a parameter, called "<weight>.<name>" in optimizer.safetensors.
struct OptimizerState {
  std::string_view name;
  Type type;
};

// One parameter's share of the update.
struct UpdateInputs {
  Parameter parameter;
  ValueId gradient = kNone;     // f32, final
  std::vector<ValueId> states;  // as Optimizer::states names them
  ValueId hyper = kNone;        // f32[16], the step's scalars (ops/step_scalars.h)
  ValueId clip = kNone;         // f32[1], factor on the gradient
  ValueId copy = kNone;         // persistent bf16 copy of the parameter to refresh, or kNone
};

// In f32, of the parameter's shape.
OptimizerState f32_state(std::string_view name, const Type& parameter);

// The codes and the magnitudes of a state in 8 bits (ops/update/blocks.h), under two names.
void add_8bit_state(std::vector<OptimizerState>& states, std::string_view codes, std::string_view absmax,
                    const Type& parameter);
// The option of an optimizer with states in 8 bits.
inline constexpr OptimizerOption k8bitFloor{
    "min_8bit_size", "smallest number of elements of a weight whose states are kept in 8 bits", 4096, 0, 1e15};
// As transformers' Trainer gives bitsandbytes' optimizers states in 8 bits: to what is looked up never, to other
// weights of at least so many elements.
bool takes_8bit_states(const OptimizerSettings& settings, const Type& parameter, ParameterKind kind);

class Optimizer {
 public:
  virtual ~Optimizer() = default;

  // As --optim takes it, and other names of the same.
  virtual std::string_view name() const = 0;
  virtual std::span<const std::string_view> aliases() const { return {}; }
  // Whether an element's update reads that element of weight, gradient and states alone, the states are in fp32, and
  // every update may round the weight.
  virtual bool by_element() const { return false; }
  // The optimizer of the same rule whose states take 8 bits; empty where there is none.
  virtual std::string_view in_8_bits() const { return {}; }
  // What --optim-args may set.
  virtual std::span<const OptimizerOption> options() const { return {}; }
  // Throws Error(usage) where values that are legal alone contradict each other.
  virtual void check(const OptimizerSettings& settings) const {}

  // The names of the scalars of a step that this optimizer alone has, at most kOwnScalars, and their values in step
  // `step`, from 1.
  virtual std::span<const std::string_view> scalars() const { return {}; }
  virtual void fill(const OptimizerSettings& settings, int64_t step, StepScalars& scalars) const {}

  // Steps from one estimate of the curvature to the next; 0: the optimizer needs none (optim/curvature.h).
  virtual int64_t curvature_interval(const OptimizerSettings& settings) const { return 0; }

  // The states of a parameter of that type and kind; none is legal.
  virtual std::vector<OptimizerState> states(const OptimizerSettings& settings, const Type& type,
                                             ParameterKind kind) const = 0;
  // Appends the nodes that update one parameter.
  virtual void update(Builder& build, const OptimizerSettings& settings, const UpdateInputs& in) const = 0;
};

// The optimizer of that name or alias; throws Error(usage) naming the known ones.
const Optimizer& find_optimizer(std::string_view name);
// The names of all, without their aliases, in alphabetical order.
std::vector<std::string_view> optimizer_names();
// "adamw (adamw_torch, ...), sgd": all with their aliases.
std::string optimizers_text();

// Creates a parameter's states and appends its update; `in.states` is empty.
void append_update(Builder& build, const OptimizerSettings& settings, UpdateInputs in);

// The attributes of an update that every optimizer has: "decay", and "tensor", the key of the draws that round a bf16
// weight (ops/stream/counter_bits.h).
Attrs update_attrs(const Graph& graph, const Parameter& parameter);

// Appends a call of `op`, (weight, gradient, states..., hyper, clip, [copy]), whose attributes are those of every
// update, these options of the settings, and `more`.
void append_update_op(Builder& build, std::string_view op, const OptimizerSettings& settings,
                      std::initializer_list<std::string_view> options, const UpdateInputs& in,
                      std::initializer_list<std::pair<std::string_view, Attr>> more = {});

}  // namespace headroom
