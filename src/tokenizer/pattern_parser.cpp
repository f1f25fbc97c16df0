#include <algorithm>
#include <utility>

#include "base/error.h"
#include "tokenizer/pattern_class_parser.h"
#include "tokenizer/pattern_node.h"
#include "tokenizer/utf8.h"

namespace headroom {
namespace {

constexpr size_t kMaxPatternBytes = 16384;
constexpr size_t kMaxSets = 512;
constexpr uint32_t kMaxCount = 1000;
constexpr int kMaxDepth = 16;

class PatternParser {
 public:
  PatternParser(std::string_view text, const std::string& place, std::vector<CharSet>& sets)
      : reader_{text, 0, place}, sets_(sets) {}

  std::unique_ptr<PatternNode> parse() {
    auto root = alternation(0);
    if (!reader_.done()) reader_.refuse("a closing ) without its opening");
    return root;
  }

 private:
  using Node = std::unique_ptr<PatternNode>;
  using Kind = PatternNode::Kind;

  static Node node(Kind kind) {
    auto made = std::make_unique<PatternNode>();
    made->kind = kind;
    return made;
  }

  Node set_node(CharSet set) {
    if (sets_.size() == kMaxSets) reader_.refuse("too many characters and classes");
    if (ignores_case_) set.ignore_case();
    set.seal();
    auto made = node(Kind::set);
    made->set = static_cast<uint16_t>(sets_.size());
    sets_.push_back(std::move(set));
    return made;
  }

  Node alternation(int depth) {
    if (depth > kMaxDepth) reader_.refuse("groups nested too deep");
    Node first = sequence(depth);
    if (!reader_.at('|')) return first;
    auto made = node(Kind::alternation);
    made->children.push_back(std::move(first));
    while (reader_.take('|')) made->children.push_back(sequence(depth));
    return made;
  }

  Node sequence(int depth) {
    auto made = node(Kind::sequence);
    while (!reader_.done() && !reader_.at('|') && !reader_.at(')')) made->children.push_back(quantified(depth));
    return made;
  }

  Node quantified(int depth) {
    Node atom = this->atom(depth);
    for (int count = 0; at_quantifier(); ++count) {
      if (atom->kind == Kind::assertion || count > 3) reader_.refuse("this repetition");
      auto repeat = node(Kind::repeat);
      const bool braces = reader_.at('{');
      read_counts(*repeat);
      if (reader_.at('?')) {
        if (braces && repeat->least == repeat->most) reader_.refuse("{n}?");
        repeat->lazy = reader_.take('?');
      } else if (!braces) {
        repeat->possessive = reader_.take('+');
      }
      repeat->children.push_back(std::move(atom));
      atom = std::move(repeat);
    }
    return atom;
  }

  bool at_quantifier() const {
    if (reader_.at('?') || reader_.at('*') || reader_.at('+')) return true;
    const std::string_view rest = reader_.rest();
    return rest.size() > 1 && rest[0] == '{' && ((rest[1] >= '0' && rest[1] <= '9') || rest[1] == ',');
  }

  void read_counts(PatternNode& repeat) {
    const char sign = reader_.next_byte();
    repeat.least = sign == '+' ? 1 : 0;
    repeat.most = sign == '?' ? 1 : PatternNode::kUnbounded;
    if (sign != '{') return;
    repeat.least = reader_.at(',') ? 0 : number();
    repeat.most = repeat.least;
    if (reader_.take(',')) repeat.most = reader_.at('}') ? PatternNode::kUnbounded : number();
    if (!reader_.take('}') || repeat.most < repeat.least || repeat.most == 0) reader_.refuse("these repetition counts");
  }

  uint32_t number() {
    uint32_t value = 0;
    if (reader_.done() || reader_.rest()[0] < '0' || reader_.rest()[0] > '9') reader_.refuse("these repetition counts");
    while (!reader_.done() && reader_.rest()[0] >= '0' && reader_.rest()[0] <= '9') {
      value = value * 10 + static_cast<uint32_t>(reader_.next_byte() - '0');
      if (value > kMaxCount) reader_.refuse("a repetition count above 1000");
    }
    return value;
  }

  Node atom(int depth) {
    if (reader_.take('(')) return group(depth);
    if (reader_.at('[')) return set_node(read_pattern_class(reader_));
    if (reader_.take('^')) return anchor(PatternAssertion::line_begin);
    if (reader_.take('$')) return anchor(PatternAssertion::line_end);
    if (reader_.take('.')) {
      CharSet any;
      any.add_range('\n', '\n');
      any.negate();
      return set_node(std::move(any));
    }
    if (reader_.take("\\A")) return anchor(PatternAssertion::text_begin);
    if (reader_.take("\\z")) return anchor(PatternAssertion::text_end);
    CharSet set;
    if (reader_.at('\\')) {
      add_pattern_escape(reader_, set);
    } else {
      const char32_t code = reader_.next_char();
      if (code == '?' || code == '*' || code == '+') reader_.refuse("a repetition of nothing");
      if (ignores_case_ && code >= 0x80) reader_.refuse("(?i) with characters beyond ASCII");
      set.add_range(code, code);
    }
    return set_node(std::move(set));
  }

  Node anchor(PatternAssertion assertion) {
    auto made = node(Kind::assertion);
    made->assertion = assertion;
    return made;
  }

  Node group(int depth) {
    const bool outer_case = ignores_case_;
    Node made;
    if (reader_.take("?="))
      made = look(PatternAssertion::ahead, false, depth);
    else if (reader_.take("?!"))
      made = look(PatternAssertion::ahead, true, depth);
    else if (reader_.take("?<="))
      made = look(PatternAssertion::behind, false, depth);
    else if (reader_.take("?<!"))
      made = look(PatternAssertion::behind, true, depth);
    else if (reader_.take("?>"))
      made = atomic(depth);
    else {
      if (reader_.take("?i:"))
        ignores_case_ = true;
      else if (reader_.take("?-i:"))
        ignores_case_ = false;
      else if (!reader_.take("?:") && reader_.at('?'))
        reader_.refuse("this kind of group");
      made = alternation(depth + 1);
    }
    ignores_case_ = outer_case;
    if (!reader_.take(')')) reader_.refuse("a group without its closing )");
    return made;
  }

  Node atomic(int depth) {
    auto made = node(Kind::atomic);
    made->children.push_back(alternation(depth + 1));
    return made;
  }

  Node look(PatternAssertion assertion, bool negative, int depth) {
    auto made = node(Kind::assertion);
    made->assertion = assertion;
    made->negative = negative;
    Node body = alternation(depth + 1);
    if (assertion == PatternAssertion::behind) {
      const PatternNode* inner = body.get();
      while (inner->kind == Kind::sequence && inner->children.size() == 1) inner = inner->children[0].get();
      if (inner->kind != Kind::set) reader_.refuse("a lookbehind of more than one character");
      made->set = inner->set;
    }
    made->children.push_back(std::move(body));
    return made;
  }

  PatternReader reader_;
  std::vector<CharSet>& sets_;
  bool ignores_case_ = false;
};

}  // namespace

std::unique_ptr<PatternNode> parse_pattern(std::string_view text, const std::string& place,
                                           std::vector<CharSet>& sets) {
  if (text.size() > kMaxPatternBytes)
    throw Error(ErrorKind::format, fmt::format("{}: a pattern of {} bytes", place, text.size()),
                "use a shorter pattern");
  return PatternParser(text, place, sets).parse();
}

}  // namespace headroom
