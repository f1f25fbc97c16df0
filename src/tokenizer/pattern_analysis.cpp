#include "tokenizer/pattern_analysis.h"

#include <algorithm>

namespace headroom {
namespace {

constexpr uint32_t kAssertion = 1U << 16;

void append(std::vector<uint32_t>& to, const std::vector<uint32_t>& from) {
  to.insert(to.end(), from.begin(), from.end());
}

void make_unique(std::vector<uint32_t>& positions) {
  std::sort(positions.begin(), positions.end());
  positions.erase(std::unique(positions.begin(), positions.end()), positions.end());
}

// The set, if a lookahead's body is a single one; else null.
const PatternNode* single_set(const PatternNode& body) {
  const PatternNode* node = &body;
  while (node->kind == PatternNode::Kind::sequence && node->children.size() == 1) node = node->children[0].get();
  return node->kind == PatternNode::Kind::set ? node : nullptr;
}

}  // namespace

PatternAnalysis::PatternAnalysis(const PatternNode& root) {
  const Ends ends = visit(root);
  matches_empty_ = ends.nullable;
  for (const uint32_t position : ends.first)
    if (position >= kAssertion) facts_.assertions[position - kAssertion].begins = true;
  auto& pairs = facts_.neighbours;
  const auto key = [](PatternFacts::Neighbours pair) { return uint32_t{pair.left} << 16 | pair.right; };
  std::sort(pairs.begin(), pairs.end(), [&](auto a, auto b) { return key(a) < key(b); });
  pairs.erase(std::unique(pairs.begin(), pairs.end(), [&](auto a, auto b) { return key(a) == key(b); }), pairs.end());
  pairs.shrink_to_fit();
  facts_.lone = lone(root).sets;
}

void PatternAnalysis::follow(const std::vector<uint32_t>& left, const std::vector<uint32_t>& right) {
  for (const uint32_t a : left) {
    if (a >= kAssertion) continue;
    for (const uint32_t b : right) {
      const auto set = static_cast<uint16_t>(a);
      if (b >= kAssertion)
        facts_.assertions[b - kAssertion].before.push_back(set);
      else
        facts_.neighbours.push_back({set, static_cast<uint16_t>(b)});
    }
  }
}

PatternAnalysis::Ends PatternAnalysis::visit(const PatternNode& node) {
  switch (node.kind) {
    case PatternNode::Kind::set:
      return {false, {node.set}, {node.set}};
    case PatternNode::Kind::sequence:
      return visit_sequence(node);
    case PatternNode::Kind::assertion:
      return visit_assertion(node);
    case PatternNode::Kind::atomic:
      return visit(*node.children[0]);
    case PatternNode::Kind::alternation: {
      Ends ends{false, {}, {}};
      for (const auto& child : node.children) {
        const Ends part = visit(*child);
        ends.nullable = ends.nullable || part.nullable;
        append(ends.first, part.first);
        append(ends.last, part.last);
      }
      return ends;
    }
    case PatternNode::Kind::repeat: {
      Ends ends = visit(*node.children[0]);
      if (ends.nullable) repeats_empty_ = true;
      if (node.most > 1) follow(ends.last, ends.first);
      ends.nullable = ends.nullable || node.least == 0;
      return ends;
    }
  }
  return {};
}

PatternAnalysis::Ends PatternAnalysis::visit_sequence(const PatternNode& node) {
  Ends ends;
  for (const auto& child : node.children) {
    const Ends part = visit(*child);
    follow(ends.last, part.first);
    if (ends.nullable) append(ends.first, part.first);
    if (!part.nullable) ends.last.clear();
    append(ends.last, part.last);
    ends.nullable = ends.nullable && part.nullable;
    make_unique(ends.first);
    make_unique(ends.last);
  }
  return ends;
}

PatternAnalysis::Ends PatternAnalysis::visit_assertion(const PatternNode& node) {
  PatternFacts::Assertion assertion{node.assertion, false, node.set, false, {}};
  if (node.assertion == PatternAssertion::ahead) {
    const PatternNode* set = single_set(*node.children[0]);
    assertion.far = set == nullptr;
    if (set != nullptr)
      assertion.set = set->set;
    else
      repeats_empty_ = repeats_empty_ || PatternAnalysis(*node.children[0]).repeats_empty();
  }
  facts_.assertions.push_back(std::move(assertion));
  const auto position = static_cast<uint32_t>(kAssertion + facts_.assertions.size() - 1);
  return {true, {position}, {position}};
}

PatternAnalysis::Lone PatternAnalysis::lone(const PatternNode& node) {
  switch (node.kind) {
    case PatternNode::Kind::set:
      return {false, true, {node.set}};
    case PatternNode::Kind::sequence:
      return lone_sequence(node);
    case PatternNode::Kind::assertion:
      return {false, true, {}};
    case PatternNode::Kind::atomic: {
      Lone inside = lone(*node.children[0]);
      inside.gives_back = false;
      return inside;
    }
    case PatternNode::Kind::alternation: {
      Lone all{false, true, {}};
      for (const auto& child : node.children) {
        const Lone part = lone(*child);
        all.nullable = all.nullable || part.nullable;
        all.gives_back = all.gives_back && part.gives_back;
        all.sets.insert(all.sets.end(), part.sets.begin(), part.sets.end());
      }
      return all;
    }
    case PatternNode::Kind::repeat: {
      Lone inside = lone(*node.children[0]);
      if (node.least > 1) inside.sets.clear();
      inside.nullable = inside.nullable || node.least == 0;
      inside.gives_back = inside.gives_back && !node.possessive;
      return inside;
    }
  }
  return {};
}

// One child matches the character, the others nothing; those before it must be able to give it back.
PatternAnalysis::Lone PatternAnalysis::lone_sequence(const PatternNode& node) {
  std::vector<Lone> parts;
  for (const auto& child : node.children) parts.push_back(lone(*child));
  const auto count_rigid = [&](size_t begin, size_t end, bool before) {
    return std::count_if(parts.begin() + static_cast<std::ptrdiff_t>(begin),
                         parts.begin() + static_cast<std::ptrdiff_t>(end),
                         [&](const Lone& part) { return !part.nullable || (before && !part.gives_back); });
  };
  Lone all;
  for (size_t i = 0; i < parts.size(); ++i) {
    const bool alone =
        !parts[i].sets.empty() && count_rigid(0, i, true) == 0 && count_rigid(i + 1, parts.size(), false) == 0;
    if (alone) all.sets.insert(all.sets.end(), parts[i].sets.begin(), parts[i].sets.end());
    all.nullable = all.nullable && parts[i].nullable;
    all.gives_back = all.gives_back && parts[i].gives_back;
  }
  return all;
}

}  // namespace headroom
