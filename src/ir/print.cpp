#include "ir/print.h"
#include "ir/tier_bytes.h"

#include <charconv>

#include "ir/lexer.h"

namespace headroom {
namespace {

bool is_identifier(std::string_view text) {
  if (text.empty() || !identifier_start(text[0])) return false;
  for (char c : text)
    if (!identifier_part(c)) return false;
  return true;
}

// Appends to one string. `number` gives the printed id of each value; null: the graph's own ids.
class Writer {
 public:
  Writer(const Graph& graph, const std::vector<int32_t>* number) : graph_(graph), number_(number) {}

  std::string take() { return std::move(out_); }
  Writer& text(std::string_view s) {
    out_.append(s);
    return *this;
  }
  Writer& line(int depth) {
    out_.append(static_cast<size_t>(2 * depth), ' ');
    return *this;
  }

  Writer& integer(int64_t value) {
    char digits[24];
    out_.append(digits, std::to_chars(digits, digits + sizeof digits, value).ptr);
    return *this;
  }

  // The shortest form that reads back to the same bits and is recognisable as a real.
  void real(double value) {
    if (value != value) {
      text("nan");
      return;
    }
    char digits[40];
    const std::string_view form(digits, std::to_chars(digits, digits + sizeof digits, value).ptr);
    text(form);
    if (form.find_first_of(".en") == std::string_view::npos) text(".0");
  }

  void quoted(std::string_view s) {
    constexpr char hex[] = "0123456789abcdef";
    out_.push_back('"');
    for (char c : s) {
      const auto byte = static_cast<unsigned char>(c);
      if (c == '"' || c == '\\')
        out_.append({'\\', c});
      else if (c == '\n')
        out_.append("\\n");
      else if (c == '\t')
        out_.append("\\t");
      else if (byte < 0x20 || byte == 0x7f)
        out_.append({'\\', 'x', hex[byte >> 4], hex[byte & 15]});
      else
        out_.push_back(c);
    }
    out_.push_back('"');
  }

  Writer& name(std::string_view s) {
    if (is_identifier(s))
      text(s);
    else
      quoted(s);
    return *this;
  }

  Writer& id(ValueId value) {
    out_.push_back('%');
    const bool known = number_ && value >= 0 && static_cast<size_t>(value) < number_->size();
    return integer(known ? (*number_)[static_cast<size_t>(value)] : value);
  }

  void ids(const std::vector<ValueId>& values) {
    for (size_t i = 0; i < values.size(); ++i) {
      if (i) text(", ");
      id(values[i]);
    }
  }

  void dim(const Dim& dim) {
    if (dim.symbol < 0)
      integer(dim.constant);
    else if (static_cast<size_t>(dim.symbol) < graph_.symbols.size())
      name(graph_.symbols[static_cast<size_t>(dim.symbol)].name);
    else
      text("?").integer(dim.symbol);
    if (dim.parts != 1) text(":").integer(dim.part).text("/").integer(dim.parts);
  }

  // <block 64, bits 4, scale f32, codes nf4, scales in 256>
  void storage(const Storage& storage) {
    text("<block ").integer(storage.block).text(", bits ").integer(storage.payload_bits);
    text(", scale ").text(dtype_name(storage.scale));
    if (storage.codes != CodeTable::integer) text(", codes ").text(code_table_name(storage.codes));
    if (storage.scale_block != 0) text(", scales in ").integer(storage.scale_block);
    text(">");
  }

  void type(const Type& type) {
    text(dtype_name(type.dtype)).text("[");
    for (size_t i = 0; i < type.shape.size(); ++i) {
      if (i) text(", ");
      dim(type.shape[i]);
    }
    text("]");
    if (type.storage != Storage{}) storage(type.storage);
    if (type.tier != Tier::device) text("@").text(tier_name(type.tier));
    if (type.shard) text("/").integer(type.shard->axis).text(":").integer(type.shard->parts);
  }

  // `%3: f32[4] gradient "name"`
  void declaration(ValueId value_id) {
    id(value_id);
    if (value_id < 0 || static_cast<size_t>(value_id) >= graph_.values.size()) return;
    const Value& value = graph_.value(value_id);
    text(": ");
    type(value.type);
    if (value.role != Role::activation) text(" ").text(role_name(value.role));
    if (!value.name.empty()) {
      text(" ");
      quoted(value.name);
    }
  }

  void declarations(const std::vector<ValueId>& values) {
    for (size_t i = 0; i < values.size(); ++i) {
      if (i) text(", ");
      declaration(values[i]);
    }
  }

  void attrs(const Attrs& attrs) {
    if (attrs.items().empty()) return;
    text(" {");
    bool first = true;
    for (const auto& [key, value] : attrs.items()) {
      if (!first) text(", ");
      first = false;
      name(key).text("=");
      if (const auto* whole = std::get_if<int64_t>(&value))
        integer(*whole);
      else if (const auto* number = std::get_if<double>(&value))
        real(*number);
      else
        quoted(std::get<std::string>(value));
    }
    text("}");
  }

  // A node without the body of a loop.
  void head(const Node& node) {
    if (!node.outputs.empty()) {
      declarations(node.outputs);
      text(" = ");
    }
    if (node.op)
      name(op_name(*node.op));
    else
      text("?");
    text("(");
    ids(node.inputs);
    text(")");
    attrs(node.attrs);
    if (node.block != kNone)
      text(" @").integer(node.block).text(".").text(stage_name(node.stage));
    else if (node.stage != Stage::forward)
      text(" @").text(stage_name(node.stage));
  }

  // ` (%3: f32[4]) {`, the nodes, `yield ...` and the closing brace.
  void body(const Region& region, int depth) {
    text(" {\n");
    for (NodeId node_id : region.nodes) {
      const Node& node = graph_.node(node_id);
      line(depth + 1).head(node);
      if (is_loop(node)) {
        const Region& inner = graph_.region(node.body);
        text(" (").declarations(inner.params);
        text(")");
        body(inner, depth + 1);
      }
      text("\n");
    }
    if (!region.results.empty()) {
      line(depth + 1).text("yield ").ids(region.results);
      text("\n");
    }
    line(depth).text("}");
  }

 private:
  const Graph& graph_;
  const std::vector<int32_t>* number_;
  std::string out_;
};

// Printed ids: persistent values first, then in the order in which the text declares them.
class Numbering {
 public:
  explicit Numbering(const Graph& graph) : graph_(graph), ids_(graph.values.size(), kNone) {
    for (size_t i = 0; i < graph.values.size(); ++i)
      if (graph.values[i].persistent) add(static_cast<ValueId>(i));
    for (const Program& program : graph.programs) region(program.region);
    // Values that nothing declares (a broken graph) come last, so that no two are printed alike.
    for (size_t i = 0; i < graph.values.size(); ++i) add(static_cast<ValueId>(i));
  }
  const std::vector<int32_t>& ids() const { return ids_; }

 private:
  void add(ValueId id) {
    int32_t& number = ids_[static_cast<size_t>(id)];
    if (number == kNone) number = next_++;
  }
  void region(RegionId id) {
    const Region& region = graph_.region(id);
    for (ValueId param : region.params) add(param);
    for (NodeId node : region.nodes) {
      for (ValueId output : graph_.node(node).outputs) add(output);
      if (is_loop(graph_.node(node))) this->region(graph_.node(node).body);
    }
  }

  const Graph& graph_;
  std::vector<int32_t> ids_;
  int32_t next_ = 0;
};

}  // namespace

std::string print(const Graph& graph) {
  const Numbering numbering(graph);
  Writer out(graph, &numbering.ids());
  out.text("graph ").quoted(graph.name);
  out.text(" {\n");
  for (const Symbol& symbol : graph.symbols)
    out.text("  symbol ").name(symbol.name).text(" <= ").integer(symbol.bound).text("\n");
  for (size_t i = 0; i < graph.values.size(); ++i) {
    if (!graph.values[i].persistent) continue;
    out.text("  persistent ").declaration(static_cast<ValueId>(i));
    out.text("\n");
  }
  for (const Program& program : graph.programs) {
    const Region& region = graph.region(program.region);
    out.text("  program ").name(program.name);
    if (!region.params.empty()) {
      out.text(" (").declarations(region.params);
      out.text(")");
    }
    out.body(region, 1);
    out.text("\n");
  }
  out.text("}\n");
  return out.take();
}

std::string print_node(const Graph& graph, NodeId node_id) {
  Writer out(graph, nullptr);
  if (node_id < 0 || static_cast<size_t>(node_id) >= graph.nodes.size()) {
    out.text("node ").integer(node_id);
    return out.take();
  }
  const Node& node = graph.node(node_id);
  out.head(node);
  if (is_loop(node)) out.text(" {...}");
  return out.take();
}

std::string print_type(const Graph& graph, const Type& type) {
  Writer out(graph, nullptr);
  out.type(type);
  return out.take();
}

}  // namespace headroom
