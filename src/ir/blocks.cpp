#include "ir/blocks.h"

#include <algorithm>
#include <map>
#include <unordered_map>

#include "base/error.h"
#include "ir/block_signature.h"

namespace headroom {

std::vector<BlockClass> block_classes(const Graph& graph, RegionId region) {
  std::map<int32_t, std::vector<NodeId>> blocks;
  for (NodeId id : graph.region(region).nodes)
    if (graph.node(id).block != kNone) blocks[graph.node(id).block].push_back(id);
  BlockSignature signature(graph);
  std::vector<BlockClass> classes;
  std::map<std::string, size_t> known;  // signature -> class
  for (const auto& [block, nodes] : blocks) {
    std::string bytes = signature.of(nodes);
    const uint64_t hash = stable_hash(bytes);
    const auto [at, fresh] = known.emplace(std::move(bytes), classes.size());
    if (fresh) classes.push_back({hash, {}});
    classes[at->second].blocks.push_back(block);
  }
  return classes;
}

namespace {

// `count` blocks of `period` nodes from `start`. The hashes keep repeating for `slack` more nodes.
struct Candidate {
  int32_t start = 0;
  int32_t period = 0;
  int32_t count = 0;
  int32_t slack = 0;
  int32_t covered() const { return count * period; }
};

constexpr size_t kMaxCandidates = 64;  // only the longest are tried

bool better(const Candidate& a, const Candidate& b) {
  if (a.covered() != b.covered()) return a.covered() > b.covered();
  if (a.period != b.period) return a.period < b.period;
  return a.start < b.start;
}

class RepeatFinder {
 public:
  RepeatFinder(const Graph& graph, RegionId region)
      : graph_(graph),
        nodes_(graph.region(region).nodes),
        signature_(graph),
        producer_(graph.values.size(), kNone),
        last_use_(graph.values.size(), kNone) {
    for (size_t i = 0; i < nodes_.size(); ++i) {
      const auto position = static_cast<int32_t>(i);
      for (ValueId id : graph.node(nodes_[i]).outputs) producer_[static_cast<size_t>(id)] = position;
      note_uses(nodes_[i], position);
    }
    for (ValueId id : graph.region(region).results)
      last_use_[static_cast<size_t>(id)] = static_cast<int32_t>(nodes_.size());
    number_shapes();
  }

  std::vector<int32_t> find() {
    std::vector<int32_t> blocks(nodes_.size(), kNone);
    for (Candidate candidate : candidates()) {
      candidate.start += narrowest_shift(candidate);
      const Candidate run = longest_equal_run(candidate);
      if (run.count < 2) continue;
      for (int32_t i = 0; i < run.covered(); ++i) blocks[static_cast<size_t>(run.start + i)] = i / run.period;
      break;
    }
    return blocks;
  }

 private:
  // Reads inside the body of a loop count as reads by the loop.
  void note_uses(NodeId id, int32_t position) {
    const Node& node = graph_.node(id);
    for (ValueId input : node.inputs) last_use_[static_cast<size_t>(input)] = position;
    if (!is_loop(node)) return;
    for (NodeId inner : graph_.region(node.body).nodes) note_uses(inner, position);
    for (ValueId result : graph_.region(node.body).results) last_use_[static_cast<size_t>(result)] = position;
  }

  // Numbers the shapes; equal shapes get equal numbers.
  void number_shapes() {
    std::unordered_map<std::string, int32_t> known;
    for (NodeId id : nodes_)
      shapes_.push_back(known.emplace(signature_.shape_of(id), static_cast<int32_t>(known.size())).first->second);
  }

  std::vector<Candidate> candidates() const {
    std::vector<Candidate> out;
    const auto size = static_cast<int32_t>(nodes_.size());
    for (int32_t period = 1; period <= size / 2; ++period) {
      int32_t equal = 0;  // positions i just before `at` with shape[i] == shape[i + period]
      for (int32_t at = 0; at + period <= size; ++at) {
        const bool same =
            at + period < size && shapes_[static_cast<size_t>(at)] == shapes_[static_cast<size_t>(at + period)];
        if (same) {
          ++equal;
          continue;
        }
        const int32_t length = equal + period;
        if (equal >= period) out.push_back({at - equal, period, length / period, length % period});
        equal = 0;
      }
    }
    std::sort(out.begin(), out.end(), better);
    if (out.size() > kMaxCandidates) out.resize(kMaxCandidates);
    return out;
  }

  // How far to move the blocks within the slack so that the fewest values cross the boundary after the first block.
  int32_t narrowest_shift(const Candidate& candidate) const {
    const int32_t first = candidate.start + candidate.period;  // the boundary without a shift
    // crossing[i]: values of the block before boundary first + i that are read at or after it, as differences.
    std::vector<int32_t> crossing(static_cast<size_t>(candidate.slack) + 2, 0);
    for (int32_t at = candidate.start; at < first + candidate.slack; ++at)
      for (ValueId id : graph_.node(nodes_[static_cast<size_t>(at)]).outputs) {
        const int32_t from = std::max(at + 1 - first, 0);
        const int32_t to = std::min({last_use_[static_cast<size_t>(id)], at + candidate.period}) - first;
        if (from > std::min(to, candidate.slack)) continue;
        ++crossing[static_cast<size_t>(from)];
        --crossing[static_cast<size_t>(std::min(to, candidate.slack)) + 1];
      }
    int32_t best = 0;
    for (int32_t shift = 0, count = 0, fewest = 0; shift <= candidate.slack; ++shift) {
      count += crossing[static_cast<size_t>(shift)];
      if (shift > 0 && count >= fewest) continue;
      fewest = count;
      best = shift;
    }
    return best;
  }

  std::span<const NodeId> block(const Candidate& candidate, int32_t index) const {
    return {nodes_.data() + candidate.start + index * candidate.period, static_cast<size_t>(candidate.period)};
  }

  // Whether block `index` reads a value made in the block before it.
  bool chained(const Candidate& candidate, int32_t index) const {
    const int32_t begin = candidate.start + index * candidate.period;
    for (NodeId id : block(candidate, index))
      for (ValueId input : graph_.node(id).inputs) {
        const int32_t made = producer_[static_cast<size_t>(input)];
        if (made >= begin - candidate.period && made < begin) return true;
      }
    return false;
  }

  // The longest run of consecutive blocks with equal wiring in which each block feeds the next.
  Candidate longest_equal_run(const Candidate& candidate) {
    Candidate best{candidate.start, candidate.period, 0, 0};
    int32_t first = 0;
    std::string last;
    for (int32_t i = 0; i < candidate.count; ++i) {
      std::string bytes = signature_.of(block(candidate, i));
      if (i > 0 && (bytes != last || !chained(candidate, i))) first = i;
      last = std::move(bytes);
      if (i - first + 1 > best.count) {
        best.count = i - first + 1;
        best.start = candidate.start + first * candidate.period;
      }
    }
    return best;
  }

  const Graph& graph_;
  const std::vector<NodeId>& nodes_;
  BlockSignature signature_;
  std::vector<int32_t> producer_;  // position in the region of the node that makes a value
  std::vector<int32_t> last_use_;  // last position that reads it
  std::vector<int32_t> shapes_;
};

}  // namespace

std::vector<int32_t> find_repeated_blocks(const Graph& graph, RegionId region) {
  return RepeatFinder(graph, region).find();
}

void set_blocks(Graph& graph, RegionId region, std::span<const int32_t> blocks) {
  const std::vector<NodeId>& nodes = graph.region(region).nodes;
  HR_CHECK(blocks.size() == nodes.size(), "{} blocks for {} nodes", blocks.size(), nodes.size());
  for (size_t i = 0; i < nodes.size(); ++i) graph.node(nodes[i]).block = blocks[i];
}

}  // namespace headroom
