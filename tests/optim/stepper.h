// Runs an optimizer's update of one parameter as in training: its nodes, its states, the scalars of each step.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "../ops_support/op_harness.h"
#include "ir/builder.h"
#include "ops/registry.h"
#include "optim/optimizer.h"

namespace headroom::op_test {

class Stepper {
 public:
  Stepper(const OptimizerSettings& settings, DType weight, std::vector<int64_t> dims, ParameterKind kind,
          RunOptions options = {}, std::string_view name = "layer.weight", const Storage& storage = {})
      : settings_(settings), options_(std::move(options)) {
    Builder build(graph_, add_program(graph_, "train_step"), find_op);
    std::vector<Dim> shape;
    for (const int64_t dim : dims) shape.push_back(Dim::of(dim));
    UpdateInputs in;
    in.parameter = {build.persistent(std::string(name), Type{weight, shape, storage}, Role::parameter), kind};
    in.gradient = build.persistent("gradient", Type{DType::f32, shape}, Role::gradient);
    in.hyper = build.persistent("hyper", Type{DType::f32, {Dim::of(kHyperCount)}}, Role::data);
    in.clip = build.persistent("clip", Type{DType::f32, {Dim::of(1)}}, Role::data);
    append_update(build, settings_, in);
    for (const Value& value : graph_.values)
      if (value.persistent && value.role == Role::optimizer) {
        states_.push_back(Tensor::filled(value.type.dtype, concrete(value.type, {}).dims, 0));
        state_names_.push_back(value.name);
      }
  }

  const Node& node() const { return graph_.node(graph_.region(graph_.find_program("train_step")).nodes.at(0)); }
  size_t nodes() const { return graph_.region(graph_.find_program("train_step")).nodes.size(); }
  const std::vector<std::string>& state_names() const { return state_names_; }
  const Tensor& state(size_t i) const { return states_.at(i); }

  // The weight after one more step, or if labels were drawn after a pass that estimates the curvature.
  Tensor step(const Tensor& weight, const Tensor& gradient, double lr, double decay, double clip = 1,
              double drawn_labels = 0) {
    StepScalars scalars(find_optimizer(settings_.optimizer()).scalars());
    scalars.set("learning_rate", lr);
    scalars.set("weight_decay", decay);
    scalars.set("drawn_labels", drawn_labels);
    scalars.set_key(3, static_cast<uint32_t>(++steps_));
    find_optimizer(settings_.optimizer()).fill(settings_, steps_, scalars);
    Tensor hyper = Tensor::filled(DType::f32, {kHyperCount}, 0);
    std::copy(scalars.values().begin(), scalars.values().end(), hyper.as<float>());
    std::vector<Tensor> in{weight, gradient};
    in.insert(in.end(), states_.begin(), states_.end());
    in.insert(in.end(), {hyper, Tensor(DType::f32, {1}, {clip})});
    const RunResult found = run_op(op_name(*node().op), in, node().attrs, options_);
    for (size_t i = 0; i < states_.size(); ++i) states_[i] = found.outputs[1 + i];
    return found.outputs[0];
  }

 private:
  OptimizerSettings settings_;
  RunOptions options_;
  Graph graph_;
  std::vector<Tensor> states_;
  std::vector<std::string> state_names_;
  int64_t steps_ = 0;
};

}  // namespace headroom::op_test
