#include "ir/parse.h"

#include <limits>
#include <optional>
#include <unordered_map>

#include "base/error.h"
#include "ir/lexer.h"
#include "ir/limits.h"
#include "ir/type_rules.h"

namespace headroom {
namespace {

constexpr int kRoles = static_cast<int>(Role::workspace) + 1;
constexpr int kStages = static_cast<int>(Stage::transfer) + 1;

template <typename Enum>
std::optional<Enum> by_name(std::string_view name, std::string_view (*spelling)(Enum), int count) {
  for (int i = 0; i < count; ++i)
    if (spelling(static_cast<Enum>(i)) == name) return static_cast<Enum>(i);
  return std::nullopt;
}

// Recursive descent; one method per rule of docs/ir_format.md. The graph's lists grow while a body is parsed, so
// nothing holds a reference into them.
class Parser {
 public:
  Parser(std::string_view text, const std::string& source, const OpLookup& ops) : lexer_(text, source), ops_(ops) {}

  Graph graph() {
    expect_word("graph");
    graph_.name = text("the name of the graph in quotes");
    expect("{");
    while (!accept("}")) item();
    if (token().kind != TokenKind::end) lexer_.fail("nothing after the graph");
    return std::move(graph_);
  }

 private:
  const Token& token() const { return lexer_.token(); }
  bool at(std::string_view punctuation) const {
    return token().kind == TokenKind::punctuation && token().spelling == punctuation;
  }
  bool at_word(std::string_view word) const {
    return token().kind == TokenKind::identifier && token().spelling == word;
  }
  bool accept(std::string_view punctuation) {
    if (!at(punctuation)) return false;
    lexer_.advance();
    return true;
  }
  void expect(std::string_view punctuation) {
    if (!accept(punctuation)) lexer_.fail(fmt::format("'{}'", punctuation));
  }
  void expect_word(std::string_view word) {
    if (!at_word(word)) lexer_.fail(fmt::format("'{}'", word));
    lexer_.advance();
  }

  std::string text(std::string_view expected) {
    if (token().kind != TokenKind::text) lexer_.fail(expected);
    std::string out = token().text;
    lexer_.advance();
    return out;
  }
  // An identifier, or the same in quotes.
  std::string name(std::string_view expected) {
    if (token().kind == TokenKind::text) return text(expected);
    if (token().kind != TokenKind::identifier) lexer_.fail(expected);
    std::string out(token().spelling);
    lexer_.advance();
    return out;
  }
  int64_t integer(int64_t low, int64_t high, std::string_view what) {
    if (token().kind != TokenKind::integer || token().integer < low || token().integer > high)
      lexer_.fail(fmt::format("{} from {} to {}", what, low, high));
    const int64_t out = token().integer;
    lexer_.advance();
    return out;
  }

  void item() {
    if (at_word("symbol")) return symbol();
    if (at_word("persistent")) {
      lexer_.advance();
      graph_.value(declaration()).persistent = true;
      return;
    }
    if (at_word("program")) return program();
    lexer_.fail("'symbol', 'persistent', 'program' or '}'");
  }

  void symbol() {
    if (graph_.symbols.size() >= kMaxSymbols) lexer_.fail(fmt::format("at most {} symbols", kMaxSymbols));
    lexer_.advance();
    const std::string_view place = token().spelling;
    const std::string symbol_name = name("the name of a symbol");
    if (graph_.find_symbol(symbol_name) != kNone)
      lexer_.fail_at(place, "found a symbol that is declared already, expected a new name");
    expect("<=");
    graph_.add_symbol(symbol_name, integer(1, kMaxElements, "a bound"));
  }

  void program() {
    if (graph_.programs.size() >= kMaxPrograms) lexer_.fail(fmt::format("at most {} programs", kMaxPrograms));
    lexer_.advance();
    const std::string_view place = token().spelling;
    const std::string program_name = name("the name of a program");
    if (graph_.find_program(program_name) != kNone)
      lexer_.fail_at(place, "found a program that is declared already, expected a new name");
    const RegionId region = add_program(graph_, program_name);
    std::vector<ValueId> params;
    if (at("(")) params = parameters();
    body(region, std::move(params), 0);
  }

  std::vector<ValueId> parameters() {
    std::vector<ValueId> out;
    expect("(");
    while (!at(")")) {
      if (!out.empty()) expect(",");
      out.push_back(declaration());
    }
    expect(")");
    return out;
  }

  // %id: type [role] ["name"]
  ValueId declaration() {
    if (token().kind != TokenKind::value) lexer_.fail("a value such as %12");
    if (!ids_.emplace(token().integer, static_cast<ValueId>(graph_.values.size())).second)
      lexer_.fail("a value id that is not defined above");
    lexer_.advance();
    expect(":");
    Type value_type = type();
    Role role = Role::activation;
    if (token().kind == TokenKind::identifier) {
      if (const std::optional<Role> found = by_name<Role>(token().spelling, role_name, kRoles)) {
        role = *found;
        lexer_.advance();
      }
    }
    std::string value_name;
    if (token().kind == TokenKind::text) value_name = text("a name");
    return add_value(graph_, std::move(value_type), role, std::move(value_name));
  }

  Type type() {
    const std::string_view place = token().spelling;
    Type out;
    out.dtype = dtype();
    expect("[");
    while (!at("]")) {
      if (!out.shape.empty()) expect(",");
      if (out.shape.size() >= kMaxRank) lexer_.fail(fmt::format("at most {} dimensions", kMaxRank));
      out.shape.push_back(dim());
    }
    expect("]");
    if (accept("<")) out.storage = storage();
    if (accept("@")) out.tier = tier();
    if (accept("/")) {
      const int64_t axis = integer(0, static_cast<int64_t>(kMaxRank) - 1, "an axis");
      expect(":");
      out.shard = {static_cast<int32_t>(axis), static_cast<int32_t>(integer(1, kMaxParts, "a number of parts"))};
    }
    const std::string problem = type_problem(out, graph_.symbols);
    if (!problem.empty()) lexer_.fail_at(place, "found a type that cannot be: " + problem + ", expected a legal one");
    return out;
  }

  DType dtype() {
    const std::optional<DType> found =
        token().kind == TokenKind::identifier ? parse_dtype(token().spelling) : std::nullopt;
    if (!found) lexer_.fail("a dtype such as f32");
    lexer_.advance();
    return *found;
  }

  Dim dim() {
    if (token().kind == TokenKind::integer) return Dim::of(integer(0, kMaxElements, "a dimension"));
    const std::string_view place = token().spelling;
    const SymbolId symbol_id = graph_.find_symbol(name("a dimension: a number or a symbol"));
    if (symbol_id == kNone) lexer_.fail_at(place, "found an unknown symbol, expected one declared above");
    if (!accept(":")) return Dim::of_symbol(symbol_id);
    const int64_t part = integer(0, kMaxParts - 1, "the number of a part");
    expect("/");
    return Dim::of_part(symbol_id, static_cast<int32_t>(part),
                        static_cast<int32_t>(integer(2, kMaxParts, "a number of parts")));
  }

  // <block 64, bits 4, scale f32, codes nf4, scales in 256>, after the opening bracket; the last two are optional
  Storage storage() {
    Storage out;
    expect_word("block");
    out.block = static_cast<int32_t>(integer(1, std::numeric_limits<int32_t>::max(), "a block length"));
    expect(",");
    expect_word("bits");
    out.payload_bits = static_cast<int32_t>(integer(1, 64, "payload bits"));
    expect(",");
    expect_word("scale");
    out.scale = dtype();
    while (accept(",")) {
      if (at_word("codes")) {
        lexer_.advance();
        out.codes = code_table();
      } else {
        expect_word("scales");
        expect_word("in");
        out.scale_block = static_cast<int32_t>(integer(1, std::numeric_limits<int32_t>::max(), "a block of scales"));
      }
    }
    expect(">");
    return out;
  }

  CodeTable code_table() {
    const std::string_view place = token().spelling;
    const std::optional<CodeTable> table = by_name(name("a table of codes"), code_table_name, 3);
    if (!table) lexer_.fail_at(place, "found an unknown table of codes, expected integer, nf4 or fp4");
    return *table;
  }

  Tier tier() {
    Tier out = Tier::host;
    if (at_word("disk"))
      out = Tier::disk;
    else if (!at_word("host"))
      lexer_.fail("'host' or 'disk'");
    lexer_.advance();
    return out;
  }

  // { nodes [yield values] }
  void body(RegionId region, std::vector<ValueId> params, int depth) {
    graph_.region(region).params = std::move(params);
    expect("{");
    std::vector<NodeId> nodes;
    while (!at("}") && !at_word("yield")) nodes.push_back(node(depth));
    std::vector<ValueId> results;
    if (at_word("yield")) {
      lexer_.advance();
      do results.push_back(use());
      while (accept(","));
    }
    expect("}");
    graph_.region(region).nodes = std::move(nodes);
    graph_.region(region).results = std::move(results);
  }

  ValueId use() {
    if (token().kind != TokenKind::value) lexer_.fail("a value such as %12");
    const auto found = ids_.find(token().integer);
    if (found == ids_.end()) lexer_.fail("a value that is defined above");
    lexer_.advance();
    return found->second;
  }

  // [outputs =] op(inputs) [{attributes}] [@place] [(params) {body}]
  NodeId node(int depth) {
    Node out;
    if (token().kind == TokenKind::value) {
      do out.outputs.push_back(declaration());
      while (accept(","));
      expect("=");
    }
    out.op = op();
    expect("(");
    while (!at(")")) {
      if (!out.inputs.empty()) expect(",");
      out.inputs.push_back(use());
    }
    expect(")");
    if (accept("{")) out.attrs = attrs();
    if (accept("@")) place(out);
    if (at("(")) out.body = loop_body(depth + 1);
    graph_.nodes.push_back(std::move(out));
    return static_cast<NodeId>(graph_.nodes.size() - 1);
  }

  RegionId loop_body(int depth) {
    if (depth > kMaxLoopDepth) lexer_.fail(fmt::format("at most {} nested loops", kMaxLoopDepth));
    std::vector<ValueId> params = parameters();
    graph_.regions.emplace_back();
    const auto region = static_cast<RegionId>(graph_.regions.size() - 1);
    body(region, std::move(params), depth);
    return region;
  }

  const Op* op() {
    const std::string_view place = token().spelling;
    const std::string op_name = name("a node: its outputs, or the name of an op");
    try {
      return &ops_(op_name);
    } catch (const InternalError&) {
      lexer_.fail_at(place, "found an unknown op, expected the name of a registered one");
    }
  }

  // name=value, ... }, after the opening brace
  Attrs attrs() {
    Attrs out;
    while (!at("}")) {
      if (!out.items().empty()) expect(",");
      if (out.items().size() >= kMaxAttrs) lexer_.fail(fmt::format("at most {} attributes", kMaxAttrs));
      const std::string_view place = token().spelling;
      const std::string key = name("the name of an attribute");
      if (out.has(key)) lexer_.fail_at(place, "found an attribute that is given already, expected a new name");
      expect("=");
      out.set(key, attr());
    }
    expect("}");
    return out;
  }

  Attr attr() {
    Attr out;
    if (token().kind == TokenKind::integer)
      out = token().integer;
    else if (token().kind == TokenKind::real)
      out = token().real;
    else if (token().kind == TokenKind::text)
      out = token().text;
    else if (at_word("inf"))
      out = std::numeric_limits<double>::infinity();
    else if (at_word("nan"))
      out = std::numeric_limits<double>::quiet_NaN();
    else
      lexer_.fail("the value of an attribute: a number or a text in quotes");
    lexer_.advance();
    return out;
  }

  // block, stage or block.stage, after the @
  void place(Node& node) {
    if (token().kind == TokenKind::integer) {
      node.block = static_cast<int32_t>(integer(0, kMaxBlockId, "a block"));
      if (!accept(".")) return;
    }
    const std::optional<Stage> found =
        token().kind == TokenKind::identifier ? by_name<Stage>(token().spelling, stage_name, kStages) : std::nullopt;
    if (!found) lexer_.fail("a block, or a stage such as 'forward'");
    node.stage = *found;
    lexer_.advance();
  }

  Lexer lexer_;
  const OpLookup& ops_;
  Graph graph_;
  std::unordered_map<int64_t, ValueId> ids_;  // looked up, never iterated
};

}  // namespace

Graph parse_graph(std::string_view text, const std::string& source, const OpLookup& ops) {
  if (text.size() > kMaxText)
    throw Error(ErrorKind::format,
                fmt::format("{} has {} bytes, a graph has at most {}", source, text.size(), kMaxText),
                "check that the file is a graph in text form");
  return Parser(text, source, ops).graph();
}

}  // namespace headroom
