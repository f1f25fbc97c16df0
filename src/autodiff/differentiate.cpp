#include "autodiff/differentiate.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "base/error.h"
#include "ir/vjp.h"

namespace headroom {
namespace {

class Differentiator final : public VjpContext {
 public:
  Differentiator(Builder& build, std::vector<ValueId>& roots, GradientSinks& sinks)
      : build_(build), roots_(roots), sinks_(sinks) {}

  void run() {
    const std::vector<NodeId> forward = graph().region(build_.region()).nodes;
    find_dependents(forward);
    build_.set_stage(Stage::backward);
    for (auto at = forward.rbegin(); at != forward.rend(); ++at) visit(*at);
    build_.set_block(kNone);
    drop_replaced();
  }

  Builder& build() override { return build_; }
  const Node& node() const override { return node_; }
  ValueId cotangent(int output) override { return gathered(this->output(output)); }
  bool wants(int input) const override { return depends_.contains(this->input(input)); }
  ValueId addend(int input) override { return gathered(this->input(input)); }

  void contribute(int input, ValueId value) override {
    if (!wants(input)) return;
    const ValueId so_far = addend(input);
    set_total(input, so_far == kNone ? value : build_.call("add", {so_far, value}));
  }

  void set_total(int input, ValueId value) override {
    const ValueId primal = this->input(input);
    // A value in codes has the cotangent of its decoded elements.
    HR_CHECK(build_.type(value).dtype == build_.type(primal).dtype || !is_floating(build_.type(primal).dtype),
             "the cotangent of %{} made by {} is {}, the value is {}", primal, op_name(*node_.op),
             dtype_name(build_.type(value).dtype), dtype_name(build_.type(primal).dtype));
    cotangents_[primal] = value;
  }

  bool trains(int input) const override { return sinks_.accumulators.contains(parameter_of(this->input(input))); }
  ValueId accumulator(int input) override { return sinks_.accumulators.at(parameter_of(this->input(input))); }
  const char* accumulate(int input) const override {
    return touched_.contains(parameter_of(this->input(input))) ? "always" : "carried";
  }
  void set_accumulator(int input, ValueId updated) override {
    const ValueId parameter = parameter_of(this->input(input));
    touched_.insert(parameter);
    sinks_.accumulators.at(parameter) = updated;
  }

  void replace_output(int output, ValueId replacement) override { replaced_[this->output(output)] = replacement; }

 private:
  Graph& graph() const { return build_.graph(); }

  ValueId gathered(ValueId id) const {
    const auto at = cotangents_.find(id);
    return at == cotangents_.end() ? kNone : at->second;
  }

  // The persistent value that a value is, or is a copy, a cast or a rounding of; kNone otherwise.
  ValueId parameter_of(ValueId id) const {
    for (;;) {
      if (const auto copy = sinks_.copies.find(id); copy != sinks_.copies.end()) return copy->second;
      if (graph().value(id).persistent) return id;
      const auto form = forms_.find(id);
      if (form == forms_.end()) return kNone;
      id = form->second;
    }
  }

  static bool changes_form(const Node& node) {
    return node.op->kind() == OpKind::cast || node.op->kind() == OpKind::weight_rounding;
  }

  // Finds the values that depend on a trained parameter, without the parameters, their casts and roundings.
  void find_dependents(const std::vector<NodeId>& nodes) {
    for (NodeId id : nodes) {
      const Node& node = graph().node(id);
      HR_CHECK(!is_loop(node), "a loop inside the differentiated region");
      if (changes_form(node)) forms_[result_of(node)] = source_of(node);
      bool depends = false;
      for (ValueId input : node.inputs) {
        depends = depends || depends_.contains(input);
        if (const ValueId parameter = parameter_of(input); parameter != kNone)
          depends = depends || sinks_.accumulators.contains(parameter);
      }
      const bool weight_form = changes_form(node) && parameter_of(result_of(node)) != kNone;
      if (depends && !weight_form) depends_.insert(node.outputs.begin(), node.outputs.end());
    }
  }

  void visit(NodeId id) {
    node_ = graph().node(id);
    // The vjp of a rounding runs if the products that read its result have added to the weight's gradient.
    bool active = node_.op->kind() == OpKind::weight_rounding && touched_.contains(parameter_of(result_of(node_)));
    for (ValueId output : node_.outputs) {
      const bool root = std::find(roots_.begin(), roots_.end(), output) != roots_.end();
      active = active || root || (depends_.contains(output) && cotangents_.contains(output));
    }
    if (!active) return;
    build_.set_block(node_.block);
    node_.op->vjp(*this);
    for (ValueId output : node_.outputs) cotangents_.erase(output);
  }

  // Replaces results and roots, and removes the forward nodes whose outputs were all replaced.
  void drop_replaced() {
    Region& region = graph().region(build_.region());
    for (std::vector<ValueId>* list : {&region.results, &roots_})
      for (ValueId& id : *list)
        if (const auto at = replaced_.find(id); at != replaced_.end()) id = at->second;
    const auto is_dead = [&](NodeId id) {
      const Node& node = graph().node(id);
      return !node.outputs.empty() &&
             std::all_of(node.outputs.begin(), node.outputs.end(), [&](ValueId o) { return replaced_.contains(o); });
    };
    region.nodes.erase(std::remove_if(region.nodes.begin(), region.nodes.end(), is_dead), region.nodes.end());
  }

  Builder& build_;
  std::vector<ValueId>& roots_;
  GradientSinks& sinks_;
  Node node_;  // a copy: appending nodes moves the graph's vector
  std::unordered_map<ValueId, ValueId> cotangents_;
  std::unordered_map<ValueId, ValueId> forms_;  // the result of a cast or a rounding -> its input
  std::unordered_map<ValueId, ValueId> replaced_;
  std::unordered_set<ValueId> depends_;
  std::unordered_set<ValueId> touched_;
};

}  // namespace

void differentiate(Builder& build, std::vector<ValueId>& roots, GradientSinks& sinks) {
  Differentiator(build, roots, sinks).run();
}

}  // namespace headroom
