#include "passes/sequence_chunks.h"

#include <algorithm>
#include <map>
#include <set>

#include "base/error.h"
#include "ir/graph_index.h"
#include "ir/rewrite.h"
#include "ops/registry.h"
#include "passes/row_run.h"
#include "passes/row_runs.h"

namespace headroom {
namespace {

// Attributes of a call that adds to what its accumulators hold.
Attrs adding(Attrs attrs) {
  for (const auto& [name, value] : Attrs(attrs).items())
    if (name.find("accumulate") != std::string::npos) attrs.set(name, "always");
  return attrs;
}

// Gives losses the labels that each row predicts, so that rows are by themselves.
void label_rows(Graph& graph, RegionId region) {
  const TokenRows rows(graph);
  std::vector<Insertion> insertions;
  const std::vector<NodeId> nodes = graph.region(region).nodes;
  for (size_t at = 0; at < nodes.size(); ++at) {
    const Node& loss = graph.node(nodes[at]);
    if (!TokenRows::reads_next_labels(loss) || !rows.has(operand(loss, "x"))) continue;
    const NodeId labels =
        make_node(graph, find_op("next_labels"), {operand(loss, "labels")}, {}, kNone, Stage::forward, Role::data);
    insertions.push_back({static_cast<int32_t>(at), labels});
    operand_of(graph.node(nodes[at]), "labels") = result_of(graph.node(labels));
    graph.node(nodes[at]).attrs.set("shift", int64_t{0});
  }
  insert_all(graph, region, std::move(insertions));
}

// Writes a run as one copy per part.
class Unroller {
 public:
  Unroller(Graph& graph, const RowRun& run, int64_t parts) : graph_(graph), rows_(graph), run_(run), parts_(parts) {
    block_ = graph.node(run.nodes().front()).block;
    turns_ = block_ == kNone && std::any_of(run.nodes().begin(), run.nodes().end(),
                                            [&](NodeId id) { return graph.node(id).stage == Stage::backward; });
  }

  std::vector<NodeId> nodes() {
    for (const auto& [result, storage] : run_.storages())
      if (storage != kNone) now_[result] = storage;
    for (part_ = 0; part_ < parts_; ++part_) {
      local_.clear();
      // Before a part of the result is written over it.
      for (const auto& [result, storage] : run_.storages())
        if (storage != kNone) slice(storage, stage_of(graph_.node(run_.nodes().front())));
      for (NodeId id : run_.nodes()) copy(id);
    }
    return std::move(out_);
  }

 private:
  // A run through the loss belongs to the backward pass as a whole, and shares its windows on lower tiers.
  Stage stage_of(const Node& node) const { return turns_ ? Stage::backward : node.stage; }
  bool is_last() const { return part_ + 1 == parts_; }
  Attrs place() const { return {{"part", part_}, {"parts", parts_}}; }

  // The rows of this part of a value from outside the run.
  ValueId slice(ValueId whole, Stage stage) {
    if (const auto at = local_.find(whole); at != local_.end()) return at->second;
    const auto held = std::find_if(run_.storages().begin(), run_.storages().end(),
                                   [&](const auto& entry) { return entry.second == whole; });
    const ValueId source = held == run_.storages().end() ? whole : now_.at(held->first);
    const NodeId node =
        make_node(graph_, find_op("take_rows"), {source}, place(), block_, stage, graph_.value(whole).role);
    out_.push_back(node);
    return local_[whole] = result_of(graph_.node(node));
  }

  // What the copy of a node reads for an input: the part's rows, the sum so far, or the whole.
  ValueId input(ValueId id, Stage stage) {
    if (rows_.has(id)) return slice(id, stage);
    const auto sum = sum_.find(id);
    if (sum == sum_.end()) return id;
    return now_.at(sum->second);
  }

  void copy(NodeId id) {
    const Node source = graph_.node(id);
    const Stage stage = stage_of(source);
    for (const Alias& alias : must_aliases(source)) begin_sum(source, alias);
    std::vector<ValueId> inputs;
    for (ValueId value : source.inputs) inputs.push_back(input(value, stage));
    const NodeId node = make_node(graph_, *source.op, std::move(inputs),
                                  part_ == 0 ? source.attrs : adding(source.attrs), source.block, stage);
    out_.push_back(node);
    for (size_t i = 0; i < source.outputs.size(); ++i) {
      const ValueId whole = source.outputs[i];
      if (!rows_.has(whole) && is_last()) graph_.node(node).outputs[i] = whole;
      const ValueId made = graph_.node(node).outputs[i];
      graph_.value(made).role = graph_.value(whole).role;
      if (rows_.has(whole))
        local_[whole] = made;
      else
        now_[sum_.at(whole)] = made;
    }
    for (ValueId whole : source.outputs)
      if (run_.storages().contains(whole)) put(whole, stage);
  }

  // Sums of one accumulator go by its first value in the run.
  void begin_sum(const Node& source, const Alias& alias) {
    const ValueId from = source.inputs[static_cast<size_t>(alias.input)];
    const ValueId first = sum_.try_emplace(from, from).first->second;
    now_.try_emplace(first, first);
    sum_[source.outputs[static_cast<size_t>(alias.output)]] = first;
  }

  void put(ValueId whole, Stage stage) {
    const auto into = now_.find(whole);
    const NodeId node =
        make_node(graph_, find_op("put_rows"), {local_.at(whole), into == now_.end() ? kNone : into->second}, place(),
                  block_, stage, graph_.value(whole).role);
    if (is_last()) result_of(graph_.node(node)) = whole;
    now_[whole] = result_of(graph_.node(node));
    out_.push_back(node);
  }

  Graph& graph_;
  TokenRows rows_;
  const RowRun& run_;
  int64_t parts_;
  int64_t part_ = 0;
  int32_t block_ = kNone;
  bool turns_ = false;
  std::map<ValueId, ValueId> local_;  // this part's rows of a value
  std::map<ValueId, ValueId> sum_;    // an accumulator's values in the run -> the first of them
  std::map<ValueId, ValueId> now_;    // the value that holds what is written so far of a result, or of a sum
  std::vector<NodeId> out_;
};

class BodyChunker {
 public:
  BodyChunker(Graph& graph, RegionId region, int64_t parts)
      : graph_(graph), region_(region), parts_(parts), rows_(graph), readers_(graph) {}

  int run() {
    const RowOrder order = gather_rows(graph_, region_);
    for (const auto& [begin, end] : order.runs)
      runs_.emplace_back(order.nodes.begin() + static_cast<std::ptrdiff_t>(begin),
                         order.nodes.begin() + static_cast<std::ptrdiff_t>(end));
    for (size_t at = 0; at < runs_.size(); ++at) repeat_cheap(at);
    int cut = 0;
    std::vector<NodeId> nodes;
    size_t next = 0;
    for (size_t at = 0; at < runs_.size(); ++at) {
      const auto [begin, end] = order.runs[at];
      nodes.insert(nodes.end(), order.nodes.begin() + static_cast<std::ptrdiff_t>(next),
                   order.nodes.begin() + static_cast<std::ptrdiff_t>(begin));
      next = end;
      const RowRun run(graph_, runs_[at], readers_);
      const bool saves = run.bytes_in_parts(parts_) < run.bytes_whole();
      if (saves) ++cut;
      const std::vector<NodeId> list = saves ? Unroller(graph_, run, parts_).nodes() : runs_[at];
      nodes.insert(nodes.end(), list.begin(), list.end());
    }
    nodes.insert(nodes.end(), order.nodes.begin() + static_cast<std::ptrdiff_t>(next), order.nodes.end());
    graph_.region(region_).nodes = std::move(nodes);
    return cut;
  }

 private:
  // Values that an earlier run computed again, cheaply and from rows that this run reads too, are computed here again.
  void repeat_cheap(size_t at) {
    std::map<ValueId, ValueId> clones;
    std::vector<NodeId> nodes;
    for (NodeId id : runs_[at]) {
      for (size_t i = 0; i < graph_.node(id).inputs.size(); ++i) {
        const ValueId value = graph_.node(id).inputs[i];
        const NodeId producer = repeatable(value, at);
        if (producer == kNone) continue;
        auto found = clones.find(value);
        if (found == clones.end()) {
          const NodeId clone = clone_node(graph_, producer, Stage::recompute);
          nodes.push_back(clone);
          readers_.add(graph_, clone);
          found = clones.emplace(value, result_of(graph_.node(clone))).first;
        }
        readers_.replace(graph_, id, i, found->second);
      }
      nodes.push_back(id);
    }
    runs_[at] = std::move(nodes);
    for (NodeId id : runs_[at])
      for (ValueId output : graph_.node(id).outputs) made_by_[output] = {id, at};
  }

  NodeId repeatable(ValueId value, size_t at) const {
    const auto made = made_by_.find(value);
    if (made == made_by_.end() || made->second.second == at) return kNone;
    const Node& node = graph_.node(made->second.first);
    const bool cheap = node.stage == Stage::recompute && node.op->recompute_class() == RecomputeClass::cheap &&
                       node.outputs.size() == 1 && node.block == graph_.node(runs_[at].front()).block;
    const auto at_hand = [&](ValueId input) {
      if (!rows_.has(input)) return graph_.value(input).persistent;
      return std::any_of(runs_[at].begin(), runs_[at].end(), [&](NodeId id) {
        const std::vector<ValueId>& inputs = graph_.node(id).inputs;
        return std::find(inputs.begin(), inputs.end(), input) != inputs.end();
      });
    };
    return cheap && std::all_of(node.inputs.begin(), node.inputs.end(), at_hand) ? made->second.first : kNone;
  }

  Graph& graph_;
  RegionId region_;
  int64_t parts_;
  TokenRows rows_;
  Readers readers_;
  std::vector<std::vector<NodeId>> runs_;
  std::map<ValueId, std::pair<NodeId, size_t>> made_by_;  // a value of a run: its node and the run
};

}  // namespace

int64_t most_sequence_chunks(int64_t seq_length) {
  return seq_length < 16 ? seq_length : std::max<int64_t>(16, seq_length / 8);
}

int chunk_sequences(Graph& graph, int64_t chunks) {
  const SymbolId seq = TokenRows(graph).seq();
  if (chunks < 2 || seq == kNone) return 0;
  HR_CHECK(chunks <= most_sequence_chunks(graph.symbols[static_cast<size_t>(seq)].bound), "{} chunks of {} tokens",
           chunks, graph.symbols[static_cast<size_t>(seq)].bound);
  int cut = 0;
  const std::vector<RegionId> bodies = [&] {
    const GraphIndex index(graph);
    std::vector<RegionId> out;
    for (RegionId region = 0; region < static_cast<RegionId>(graph.regions.size()); ++region)
      if (index.region(region).owner != kNone) out.push_back(region);
    return out;
  }();
  for (RegionId body : bodies) {
    label_rows(graph, body);
    cut += BodyChunker(graph, body, chunks).run();
  }
  return cut;
}

}  // namespace headroom
