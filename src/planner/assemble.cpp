#include "planner/assemble.h"

#include <algorithm>
#include <unordered_map>

#include "autodiff/differentiate.h"
#include "base/error.h"
#include "ir/builder.h"
#include "ir/rewrite.h"
#include "ops/draw_labels/shape.h"
#include "ops/registry.h"
#include "optim/curvature.h"
#include "planner/techniques/precision.h"

namespace headroom {
namespace {

// A trained weight and the inputs of its update.
struct Trained {
  ValueId weight = kNone;
  ParameterKind kind = ParameterKind::matrix;
  ValueId copy = kNone;
};

ValueId persistent_named(const Graph& graph, std::string_view name) {
  for (ValueId id = 0; id < static_cast<ValueId>(graph.values.size()); ++id)
    if (graph.value(id).persistent && graph.value(id).name == name) return id;
  HR_CHECK(false, "there is no persistent value '{}'", name);
  return kNone;
}

// Appends what draws labels in the passes that estimate the curvature, before a copy of the loss, which then reads
// them; `inputs` are the copy's. Only a CPU reads the step's scalars before it multiplies.
void draw_labels_of(Graph& graph, RegionId region, const Node& loss, std::vector<ValueId>& inputs,
                    const PlanRequest& request) {
  const auto place = [&](std::string_view name) {
    return operand_place(*loss.op, loss.attrs, loss.inputs.size(), name);
  };
  const bool out_in = loss.attrs.text("layout", "out_in") == "out_in";
  const int64_t vocabulary = graph.value(inputs[place("weight")]).type.shape[out_in ? 0 : 1].constant;
  Attrs attrs{{"interval", request.facts.is_cpu() ? curvature_interval(request.optimizer) : 0},
              {"chunk", drawn_rows(vocabulary, request.facts)},
              {"layout", out_in ? "out_in" : "in_out"},
              {"shift", loss.attrs.integer("shift", 1)},
              {"bias", loss.attrs.integer("bias")}};
  if (const double cap = loss.attrs.real("softcap"); cap > 0) attrs.set("softcap", cap);
  std::vector<ValueId> operands{inputs[place("x")], inputs[place("weight")], inputs[place("labels")],
                                persistent_named(graph, "hyper")};
  if (attrs.integer("bias") != 0) operands.push_back(inputs[place("bias")]);
  const NodeId draw = make_node(graph, find_op("draw_labels"), std::move(operands), std::move(attrs), kNone,
                                Stage::forward, Role::data);
  graph.region(region).nodes.push_back(draw);
  inputs[place("labels")] = result_of(graph.node(draw));
}

// Copies the nodes of `from` to the end of the builder's region, with its one param replaced by `carried`; returns the
// copy of its one result. Without training there is no dropout and no balancing of experts, and no label is drawn.
ValueId copy_forward(Builder& build, RegionId from, ValueId carried, bool training, const PlanRequest& request) {
  Graph& graph = build.graph();
  const bool draws = training && curvature_interval(request.optimizer) > 0;
  std::unordered_map<ValueId, ValueId> map{{graph.region(from).params.at(0), carried}};
  const auto mapped = [&](ValueId id) {
    const auto at = map.find(id);
    return at == map.end() ? id : at->second;
  };
  for (NodeId id : std::vector<NodeId>(graph.region(from).nodes)) {
    std::vector<ValueId> inputs = graph.node(id).inputs;
    Attrs attrs = graph.node(id).attrs;
    for (ValueId& input : inputs) input = mapped(input);
    if (!training) {
      graph.node(id).op->leave_training(inputs, attrs);
      if (graph.node(id).op->is_identity(attrs)) {
        map[result_of(graph.node(id))] = inputs.front();
        continue;
      }
    }
    if (draws && is_loss(graph.node(id).op->cost_class()))
      draw_labels_of(graph, build.region(), Node(graph.node(id)), inputs, request);
    const NodeId copy = clone_node(graph, id, Stage::forward);
    graph.node(copy).inputs = std::move(inputs);
    graph.node(copy).attrs = std::move(attrs);
    for (size_t i = 0; i < graph.node(id).outputs.size(); ++i)
      map[graph.node(id).outputs[i]] = graph.node(copy).outputs[i];
    graph.region(build.region()).nodes.push_back(copy);
  }
  return mapped(graph.region(from).results.at(0));
}

// Writes the programs around an assembly's forward program.
class ProgramWriter {
 public:
  ProgramWriter(Assembly& assembly, const PlanRequest& request)
      : request_(request), assembly_(assembly), graph_(assembly.graph), forward_(assembly.forward) {
    for (ValueId id = 0; id < static_cast<ValueId>(graph_.values.size()); ++id)
      if (graph_.value(id).persistent && graph_.value(id).role == Role::parameter && !assembly.copies.contains(id) &&
          !assembly.frozen.contains(id))
        trained_.push_back({id, kind_of(id), copy_of(id)});
  }

  void run() {
    stage_host("load");
    if (assembly_.trains) build_train_step();
    build_evaluate();
    if (assembly_.trains) stage_host("save");
  }

 private:
  ParameterKind kind_of(ValueId weight) const {
    if (graph_.value(weight).type.shape.size() < 2) return ParameterKind::vector;
    if (assembly_.embeddings.contains(weight)) return ParameterKind::embedding;
    return assembly_.heads.contains(weight) ? ParameterKind::head : ParameterKind::matrix;
  }

  // The accumulator that the forward program's loss adds to.
  ValueId allocate_losses(Builder& build) const {
    const Type type = build.type(graph_.region(forward_).params.at(0));
    return build.call("allocate", {}, {{"dtype", "f64"}, {"dims", dims_text(type)}}, Role::workspace);
  }

  ValueId copy_of(ValueId weight) const {
    for (const auto& [copy, source] : assembly_.copies)
      if (source == weight) return copy;
    return kNone;
  }

  void stage_host(std::string_view program) {
    RegionId region = graph_.find_program(program);
    if (region == kNone) region = add_program(graph_, program);
    Builder build(graph_, region, find_op);
    build.set_stage(Stage::transfer);
    build.append("host_stage", {}, {{"bytes", request_.staging_bytes}});
  }

  void build_train_step() {
    const RegionId region = add_program(graph_, "train_step");
    Builder build(graph_, region, find_op);
    build.set_stage(Stage::update);
    std::vector<ValueId> carried{allocate_losses(build)};
    for (const Trained& weight : trained_)
      carried.push_back(build.call("allocate", {}, {{"dtype", "f32"}, {"dims", dims_text(build.type(weight.weight))}},
                                   Role::gradient));
    const std::vector<ValueId> done =
        build.loop("micro_batches", carried, [&](Builder& body, const std::vector<ValueId>& params) {
          GradientSinks sinks;
          sinks.copies = assembly_.copies;
          for (size_t i = 0; i < trained_.size(); ++i) sinks.accumulators[trained_[i].weight] = params[i + 1];
          std::vector<ValueId> results{copy_forward(body, forward_, params[0], true, request_)};
          differentiate(body, results, sinks);
          for (const Trained& weight : trained_) results.push_back(sinks.accumulators.at(weight.weight));
          return results;
        });
    graph_.region(region).results = {done[0]};
    append_update(build, {done.begin() + 1, done.end()});
  }

  void append_update(Builder& build, const std::vector<ValueId>& gradients) {
    const ValueId hyper = persistent_named(graph_, "hyper");
    ValueId squares = build.persistent("grad_sum_squares", Type{DType::f64, {Dim::of(1)}}, Role::data);
    // Without clipping the factor is 1 whatever the norm, and must not wait for it.
    ValueId clip = kNone;
    if (!update_waits(request_)) {
      const ValueId any = build.call("allocate", {}, {{"dtype", "f64"}, {"dims", "1"}}, Role::workspace);
      clip = build.call("clip_coefficient", {any, hyper}, {}, Role::workspace);
      move_last_before_loop(build.region(), 2);
    }
    for (size_t i = 0; i < gradients.size(); ++i)
      squares = build.call("sum_squares", {gradients[i], squares}, {{"accumulate", i == 0 ? "first" : "always"}});
    if (update_waits(request_)) {
      const Attrs attrs = scales_loss(request_) ? Attrs{{"scaled", int64_t{1}}} : Attrs{};
      clip = build.call("clip_coefficient", {squares, hyper}, attrs, Role::workspace);
    }
    for (size_t i = 0; i < trained_.size(); ++i)
      headroom::append_update(
          build, request_.optimizer,
          {{trained_[i].weight, trained_[i].kind}, gradients[i], {}, hyper, clip, trained_[i].copy});
  }

  // Moves the last `count` nodes of the region to its beginning.
  void move_last_before_loop(RegionId region, int count) {
    std::vector<NodeId>& nodes = graph_.region(region).nodes;
    std::rotate(nodes.begin(), nodes.end() - count, nodes.end());
  }

  void build_evaluate() {
    const RegionId region = add_program(graph_, "evaluate");
    Builder build(graph_, region, find_op);
    const ValueId losses = allocate_losses(build);
    const std::vector<ValueId> done =
        build.loop("eval_batches", {losses}, [&](Builder& body, const std::vector<ValueId>& params) {
          return std::vector<ValueId>{copy_forward(body, forward_, params[0], false, request_)};
        });
    graph_.region(region).results = {done[0]};
  }

  const PlanRequest& request_;
  const Assembly& assembly_;
  Graph& graph_;
  const RegionId forward_;
  std::vector<Trained> trained_;
};

}  // namespace

Assembly begin_assembly(const PlanRequest& request, bool trains) {
  Assembly assembly{.graph = request.forward, .trains = trains};
  const Graph& graph = assembly.graph;
  assembly.forward = graph.find_program("forward");
  HR_CHECK(assembly.forward != kNone, "the graph has no program 'forward'");
  for (const NodeId id : graph.region(assembly.forward).nodes) {
    const Node& node = graph.node(id);
    if (node.op->kind() == OpKind::lookup) assembly.embeddings.insert(operand(node, "table"));
    if (is_loss(node.op->cost_class())) assembly.heads.insert(operand(node, "weight"));
  }
  return assembly;
}

void add_programs(Assembly& assembly, const PlanRequest& request) { ProgramWriter(assembly, request).run(); }

void drop_forward(Graph& graph) {
  graph.programs.erase(
      std::find_if(graph.programs.begin(), graph.programs.end(), [](const Program& p) { return p.name == "forward"; }));
  remove_dead_nodes(graph);
}

}  // namespace headroom
