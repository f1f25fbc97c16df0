#include "serve/tool_calls.h"

#include <fmt/format.h>

#include <algorithm>

#include "serve/api_error.h"

namespace headroom {
namespace {

constexpr int64_t kMostTools = 128;

const OrderedJson* find_tool(const OrderedJson& tools, std::string_view name) {
  for (const OrderedJson& tool : tools)
    if (tool["function"]["name"] == name) return &tool;
  return nullptr;
}

OrderedJson parameters_of(const OrderedJson& tool) {
  const OrderedJson& function = tool["function"];
  const auto at = function.find("parameters");
  return at == function.end() || at->is_null() ? OrderedJson{{"type", "object"}} : *at;
}

// Rewrites the references of a schema that was moved from the root to `place`. Values that are data are not changed.
void move_references(OrderedJson& schema, const std::string& place) {
  if (!schema.is_object() && !schema.is_array()) return;
  for (auto item = schema.begin(); item != schema.end(); ++item) {
    const std::string key = schema.is_object() ? item.key() : std::string();
    if (key == "const" || key == "enum" || key == "default" || key == "examples") continue;
    if (key == "$ref" && item->is_string() && item->get_ref<const std::string&>().starts_with('#'))
      *item = place + item->get_ref<const std::string&>().substr(1);
    else
      move_references(*item, place);
  }
}

void check_tools(const JsonFields& fields, const OrderedJson& tools) {
  if (static_cast<int64_t>(tools.size()) > kMostTools) fields.refuse("tools", "are too many");
  for (const OrderedJson& tool : tools) {
    const OrderedJson function = tool.is_object() ? tool.value("function", OrderedJson()) : OrderedJson();
    if (!function.is_object() || !function.value("name", OrderedJson()).is_string())
      fields.refuse("tools", "must be a list of {\"type\":\"function\",\"function\":{\"name\":...}}");
  }
}

ToolUse read_choice(const JsonFields& fields, bool has_tools) {
  const OrderedJson* choice = fields.find("tool_choice");
  ToolUse use{has_tools ? ToolUse::Mode::automatic : ToolUse::Mode::none, {}};
  if (!choice) return use;
  if (choice->is_object()) {
    const OrderedJson function = choice->value("function", OrderedJson());
    if (!function.is_object() || !function.value("name", OrderedJson()).is_string())
      fields.refuse("tool_choice", "names no function");
    use = {ToolUse::Mode::named, function["name"].get<std::string>()};
  } else if (*choice == "none") {
    use.mode = ToolUse::Mode::none;
  } else if (*choice == "required") {
    use.mode = ToolUse::Mode::required;
  } else if (*choice != "auto") {
    fields.refuse("tool_choice", "must be none, auto, required or a function");
  }
  if (use.forced() && !has_tools) fields.refuse("tool_choice", "requires a call, but there are no tools");
  return use;
}

// {"name","arguments"} for any of the tools. Each tool's parameters are a definition, in which its references stay
// valid.
OrderedJson any_call_schema(const OrderedJson& tools) {
  OrderedJson any = OrderedJson::array(), definitions = OrderedJson::object();
  for (const OrderedJson& tool : tools) {
    const std::string key = std::to_string(any.size()), place = "#/$defs/" + key;
    OrderedJson parameters = parameters_of(tool);
    move_references(parameters, place);
    definitions[key] = std::move(parameters);
    any.push_back({{"type", "object"},
                   {"properties", {{"name", {{"const", tool["function"]["name"]}}}, {"arguments", {{"$ref", place}}}}},
                   {"required", {"name", "arguments"}},
                   {"additionalProperties", false}});
  }
  return {{"anyOf", std::move(any)}, {"$defs", std::move(definitions)}};
}

GrammarSource call_grammar(const JsonFields& fields, const TextRequest& request) {
  OrderedJson schema;
  if (request.tool_use.mode == ToolUse::Mode::named) {
    const OrderedJson* tool = find_tool(request.tools, request.tool_use.name);
    if (!tool)
      fields.refuse("tool_choice", fmt::format("names {}, which is not among the tools", request.tool_use.name));
    schema = parameters_of(*tool);
  } else {
    schema = any_call_schema(request.tools);
  }
  GrammarSource source;
  source.kind = GrammarSource::Kind::json_schema;
  source.name = "tools";
  source.text = schema.dump();
  return source;
}

// {"name", "arguments"} or {"name", "parameters"} of an existing tool.
std::optional<ToolCall> call_of(const OrderedJson& tools, std::string_view text, std::string_view id, size_t at) {
  const auto index = static_cast<int64_t>(at);
  const OrderedJson parsed = OrderedJson::parse(text, nullptr, false);
  if (!parsed.is_object() || !parsed.value("name", OrderedJson()).is_string()) return {};
  const auto name = parsed["name"].get<std::string>();
  const OrderedJson arguments =
      parsed.contains("arguments") ? parsed["arguments"] : parsed.value("parameters", OrderedJson());
  if (!find_tool(tools, name) || !arguments.is_object()) return {};
  return ToolCall{index, fmt::format("{}{}", id, index), name, arguments.dump()};
}

std::string_view trimmed(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \t\r\n");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t\r\n") - begin + 1);
}

}  // namespace

bool is_tool(const OrderedJson& tools, std::string_view name) { return find_tool(tools, name) != nullptr; }

void read_tools(const JsonFields& fields, TextRequest& request) {
  const OrderedJson* tools = fields.array("tools");
  const bool has_tools = tools && !tools->empty();
  if (has_tools) {
    check_tools(fields, *tools);
    request.tools = *tools;
  }
  fields.flag("parallel_tool_calls");
  request.tool_use = read_choice(fields, has_tools);
  if (!request.tool_use.forced()) return;
  if (request.grammar) fields.refuse("tool_choice", "requires a call, which response_format does not allow");
  request.grammar = call_grammar(fields, request);
}

std::vector<ToolCall> written_calls(const OrderedJson& tools, std::string_view text, std::string_view id,
                                    std::string& content) {
  std::vector<ToolCall> calls;
  const size_t first = text.find(kCallOpen);
  if (first == std::string_view::npos) {
    if (std::optional<ToolCall> call = call_of(tools, trimmed(text), id, calls.size()))
      calls.push_back(std::move(*call));
    if (calls.empty()) content = text;
    return calls;
  }
  for (size_t at = first; at != std::string_view::npos; at = text.find(kCallOpen, at + 1)) {
    const size_t begin = at + kCallOpen.size();
    const std::string_view inside = text.substr(begin, text.find(kCallClose, begin) - begin);
    std::optional<ToolCall> call = call_of(tools, trimmed(inside), id, calls.size());
    if (!call) {
      content = text;
      return {};
    }
    calls.push_back(std::move(*call));
  }
  content = trimmed(text.substr(0, first));
  return calls;
}

}  // namespace headroom
