#include "tokenizer/pattern.h"

#include "base/error.h"
#include "tokenizer/pattern_analysis.h"
#include "tokenizer/utf8.h"

namespace headroom {
namespace {

constexpr size_t kMaxProgram = 20000;
constexpr size_t kMaxLiteralBytes = 512;

}  // namespace

// Compiles the tree to instructions.
class Pattern::Compiler {
 public:
  Compiler(Pattern& pattern, const std::string& place) : program_(pattern.program_), place_(place) {}

  void compile(const PatternNode& root) {
    emit(root);
    add({Code::match});
  }

 private:
  size_t add(Instruction instruction) {
    if (program_.size() == kMaxProgram)
      throw Error(ErrorKind::format, fmt::format("{}: the pattern is too large", place_),
                  "use a pattern with smaller counts");
    program_.push_back(instruction);
    return program_.size() - 1;
  }
  uint32_t here() const { return static_cast<uint32_t>(program_.size()); }

  void emit(const PatternNode& node) {
    switch (node.kind) {
      case PatternNode::Kind::set:
        add({Code::set, false, node.set});
        break;
      case PatternNode::Kind::sequence:
        for (const auto& child : node.children) emit(*child);
        break;
      case PatternNode::Kind::alternation:
        emit_alternation(node);
        break;
      case PatternNode::Kind::repeat:
        emit_repeat(node);
        break;
      case PatternNode::Kind::atomic:
        emit_enclosed({Code::atomic}, *node.children[0]);
        break;
      case PatternNode::Kind::assertion:
        emit_assertion(node);
        break;
    }
  }

  void emit_enclosed(Instruction opening, const PatternNode& body) {
    const size_t at = add(opening);
    emit(body);
    add({Code::match});
    program_[at].second = here();
  }

  void emit_assertion(const PatternNode& node) {
    const Instruction look{Code::look, node.negative, node.set, static_cast<uint32_t>(node.assertion), here() + 1};
    if (node.assertion == PatternAssertion::ahead)
      emit_enclosed(look, *node.children[0]);
    else
      add(look);
  }

  void emit_alternation(const PatternNode& node) {
    std::vector<size_t> jumps;
    for (size_t i = 0; i + 1 < node.children.size(); ++i) {
      const size_t split = add({Code::split, false, 0, here() + 1, 0});
      emit(*node.children[i]);
      jumps.push_back(add({Code::jump}));
      program_[split].second = here();
    }
    emit(*node.children.back());
    for (const size_t jump : jumps) program_[jump].first = here();
  }

  void emit_repeat(const PatternNode& node) {
    const PatternNode& body = *node.children[0];
    if (body.kind == PatternNode::Kind::set && !node.lazy) {
      add({Code::loop, node.possessive, body.set, node.least, node.most});
      return;
    }
    const size_t enclosing = node.possessive ? add({Code::atomic}) : 0;
    for (uint32_t i = 0; i < node.least; ++i) emit(body);
    if (node.most == PatternNode::kUnbounded) {
      const size_t split = add({Code::split, node.lazy, 0, here() + 1, 0});
      emit(body);
      add({Code::jump, false, 0, static_cast<uint32_t>(split)});
      program_[split].second = here();
    } else {
      std::vector<size_t> splits;
      for (uint32_t i = node.least; i < node.most; ++i) {
        splits.push_back(add({Code::split, node.lazy, 0, here() + 1, 0}));
        emit(body);
      }
      for (const size_t split : splits) program_[split].second = here();
    }
    if (!node.possessive) return;
    add({Code::match});
    program_[enclosing].second = here();
  }

  std::vector<Instruction>& program_;
  const std::string& place_;
};

// Runs the program over one text, with an explicit stack of alternatives still to try.
class Pattern::Matcher {
 public:
  Matcher(const Pattern& pattern, std::string_view text)
      : pattern_(pattern),
        text_(text),
        steps_left_(1'000'000 + 256 * text.size()),
        most_frames_(100'000 + 4 * text.size()) {}

  // The end of the match of the program from `pc` at `at`, if any.
  std::optional<size_t> run(uint32_t pc, size_t at) {
    const size_t base = frames_.size();
    for (;;) {
      count_steps(1);
      const Instruction& instruction = pattern_.program_[pc];
      if (instruction.code == Code::match) {
        frames_.resize(base);
        return at;
      }
      if (!step(instruction, pc, at) && !backtrack(base, pc, at)) return std::nullopt;
    }
  }

 private:
  // Alternatives to try later: the program from `pc` at `at`, and then at each earlier character start down to `low`.
  struct Frame {
    uint32_t pc;
    size_t at;
    size_t low;
  };

  void count_steps(size_t steps) {
    if (steps > steps_left_ || frames_.size() > most_frames_)
      throw Error(ErrorKind::run,
                  fmt::format("the pattern {} takes too long on a text of {} bytes", pattern_.text_, text_.size()),
                  "break the text into shorter rows");
    steps_left_ -= steps;
  }

  bool backtrack(size_t base, uint32_t& pc, size_t& at) {
    if (frames_.size() == base) return false;
    Frame& frame = frames_.back();
    pc = frame.pc;
    at = frame.at;
    if (frame.at > frame.low)
      frame.at = previous_utf8(text_, frame.at);
    else
      frames_.pop_back();
    return true;
  }

  // Takes one step; false if this path fails.
  bool step(const Instruction& instruction, uint32_t& pc, size_t& at) {
    switch (instruction.code) {
      case Code::set: {  // one character of `set`
        if (at == text_.size()) return false;
        const Utf8Char next = decode_utf8(text_, at);
        if (!pattern_.sets_[instruction.set].contains(next.code)) return false;
        at += next.bytes;
        ++pc;
        return true;
      }
      case Code::loop:
        return step_loop(instruction, pc, at);
      case Code::split:  // tries `first`, later `second`; with `flag` in the other order
        frames_.push_back({instruction.flag ? instruction.first : instruction.second, at, at});
        pc = instruction.flag ? instruction.second : instruction.first;
        return true;
      case Code::jump:
        pc = instruction.first;
        return true;
      case Code::look: {  // assertion of kind `first`, negated with `flag`; continues at `second`
        const bool holds = assertion_holds(instruction, pc, at);
        pc = instruction.second;
        return holds != instruction.flag;
      }
      case Code::atomic: {  // the first match of the body that follows, only; continues at `second`
        const std::optional<size_t> end = run(pc + 1, at);
        pc = instruction.second;
        if (end) at = *end;
        return end.has_value();
      }
      case Code::match:
        break;
    }
    return false;
  }

  // From `first` to `second` characters of `set`, greedily; backtracks one character at a time unless `flag`.
  bool step_loop(const Instruction& instruction, uint32_t& pc, size_t& at) {
    const CharSet& set = pattern_.sets_[instruction.set];
    size_t low = at;
    uint32_t count = 0;
    while (count < instruction.second && at < text_.size()) {
      const Utf8Char next = decode_utf8(text_, at);
      if (!set.contains(next.code)) break;
      at += next.bytes;
      if (++count <= instruction.first) low = at;
    }
    count_steps(count);
    if (count < instruction.first) return false;
    ++pc;
    if (!instruction.flag && at > low) frames_.push_back({pc, previous_utf8(text_, at), low});
    return true;
  }

  bool assertion_holds(const Instruction& instruction, uint32_t pc, size_t at) {
    switch (static_cast<PatternAssertion>(instruction.first)) {
      case PatternAssertion::ahead:
        return run(pc + 1, at).has_value();
      case PatternAssertion::behind: {
        if (at == 0) return false;
        const char32_t before = decode_utf8(text_, previous_utf8(text_, at)).code;
        return pattern_.sets_[instruction.set].contains(before);
      }
      case PatternAssertion::line_begin:
        return at == 0 || (text_[at - 1] == '\n' && at < text_.size());
      case PatternAssertion::line_end:
        return at == text_.size() || text_[at] == '\n';
      case PatternAssertion::text_begin:
        return at == 0;
      case PatternAssertion::text_end:
        return at == text_.size();
    }
    return false;
  }

  const Pattern& pattern_;
  std::string_view text_;
  std::vector<Frame> frames_;
  size_t steps_left_;
  size_t most_frames_;
};

Pattern Pattern::compile(std::string_view text, const std::string& place) {
  Pattern pattern;
  pattern.text_ = text;
  pattern.known_ = recognise_pattern(text);
  const std::unique_ptr<PatternNode> root = parse_pattern(text, place, pattern.sets_);
  PatternAnalysis analysis(*root);
  if (analysis.repeats_empty() || analysis.matches_empty())
    throw Error(
        ErrorKind::format, fmt::format("{}: the pattern {} can match the empty text", place, text),
        "use a model with another tokenizer, or tokenise the data elsewhere into rows of {\"input_ids\", \"labels\"}");
  pattern.facts_ = std::move(analysis).take_facts();
  Compiler(pattern, place).compile(*root);
  return pattern;
}

Pattern Pattern::literal(std::string_view text, const std::string& place) {
  if (text.empty() || text.size() > kMaxLiteralBytes)
    throw Error(ErrorKind::format, fmt::format("{}: a pattern of {} bytes", place, text.size()),
                fmt::format("give 1 to {} bytes", kMaxLiteralBytes));
  Pattern pattern;
  pattern.text_ = text;
  PatternNode root;
  for (size_t at = 0; at < text.size();) {
    const Utf8Char next = decode_utf8(text, at);
    CharSet set;
    set.add_range(next.code, next.code);
    set.seal();
    auto child = std::make_unique<PatternNode>();
    child->kind = PatternNode::Kind::set;
    child->set = static_cast<uint16_t>(pattern.sets_.size());
    pattern.sets_.push_back(std::move(set));
    root.children.push_back(std::move(child));
    at += next.bytes;
  }
  pattern.facts_ = PatternAnalysis(root).take_facts();
  Compiler(pattern, place).compile(root);
  return pattern;
}

std::optional<PatternMatch> Pattern::find(std::string_view text, size_t from) const {
  if (known_ == KnownPattern::none) return find_generally(text, from);
  if (from >= text.size()) return std::nullopt;
  return PatternMatch{from, scan_known_pattern(known_, text, from)};
}

std::optional<PatternMatch> Pattern::find_generally(std::string_view text, size_t from) const {
  Matcher matcher(*this, text);
  while (from < text.size()) {
    if (const std::optional<size_t> end = matcher.run(0, from)) return PatternMatch{from, *end};
    from += decode_utf8(text, from).bytes;
  }
  return std::nullopt;
}

bool Pattern::keeps_apart(char32_t left, char32_t right) const {
  const auto in = [&](uint16_t set, char32_t code) { return sets_[set].contains(code); };
  for (const PatternFacts::Neighbours& pair : facts_.neighbours)
    if (in(pair.left, left) && in(pair.right, right)) return false;
  for (const PatternFacts::Assertion& assertion : facts_.assertions) {
    bool reached = false;  // whether it may be evaluated between the two, with `left` in the match
    for (const uint16_t set : assertion.before) reached = reached || in(set, left);
    switch (assertion.kind) {
      case PatternAssertion::ahead:
        if (assertion.far || (reached && in(assertion.set, right))) return false;
        break;
      case PatternAssertion::behind:
        if (assertion.begins && in(assertion.set, left)) return false;
        break;
      case PatternAssertion::line_begin:
        if (assertion.begins && left != '\n') return false;
        break;
      case PatternAssertion::line_end:
        if (reached && right != '\n') return false;
        break;
      case PatternAssertion::text_begin:
        if (assertion.begins) return false;
        break;
      case PatternAssertion::text_end:
        if (reached) return false;
        break;
    }
  }
  return true;
}

bool Pattern::always_matches(char32_t code) const {
  for (const uint16_t set : facts_.lone)
    if (sets_[set].contains(code)) return true;
  return false;
}

bool Pattern::mentions(char32_t code) const {
  for (const CharSet& set : sets_)
    if (set.contains(code)) return true;
  return false;
}

int64_t Pattern::memory_bytes() const {
  const size_t facts = facts_.neighbours.capacity() * sizeof(PatternFacts::Neighbours) + facts_.lone.capacity() * 2;
  return static_cast<int64_t>(text_.capacity() + program_.capacity() * sizeof(Instruction) +
                              sets_.capacity() * (sizeof(CharSet) + 64) + facts + facts_.assertions.capacity() * 128);
}

}  // namespace headroom
