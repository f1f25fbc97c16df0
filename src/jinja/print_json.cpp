#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "jinja/print.h"
#include "jinja/problem.h"
#include "jinja/text.h"

namespace headroom::jinja {
namespace {

std::string json_real(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "Infinity" : "-Infinity";
  return print_real(value);
}

void append_escape(char32_t c, std::string& to) {
  constexpr std::string_view from = "\"\\\n\r\t\b\f", into = "\"\\nrtbf";
  if (const size_t i = c < 0x80 ? from.find(static_cast<char>(c)) : from.npos; i != from.npos) {
    to += '\\';
    to += into[i];
  } else if (c < 0x10000) {
    to += fmt::format("\\u{:04x}", static_cast<uint32_t>(c));
  } else {
    const uint32_t rest = static_cast<uint32_t>(c) - 0x10000;
    to += fmt::format("\\u{:04x}\\u{:04x}", 0xd800 + (rest >> 10), 0xdc00 + (rest & 0x3ff));
  }
}

class JsonWriter {
 public:
  JsonWriter(Budget& budget, const JsonStyle& style, std::string& to) : budget_(budget), style_(style), to_(to) {}

  void write(const Value& value) {
    budget_.step();
    budget_.check_text(to_.size());
    switch (value.type()) {
      case Type::none:
      case Type::boolean:
      case Type::integer:
      case Type::real:
        to_ += scalar(value);
        return;
      case Type::text:
        return write_text(value.text());
      case Type::list:
        if (value.list().kind != ListKind::list && value.list().kind != ListKind::tuple) break;
        return write_list(value.list());
      case Type::dict:
        return write_dict(value.dict());
      default:
        break;
    }
    fail(fmt::format("tojson of a {}, which is not JSON", type_name(value)));
  }

 private:
  static std::string scalar(const Value& value) {
    if (value.is(Type::none)) return "null";
    if (value.is(Type::boolean)) return value.boolean() ? "true" : "false";
    return value.is(Type::integer) ? std::to_string(value.integer()) : json_real(value.number());
  }

  void write_text(const std::string& text) {
    budget_.check_text(to_.size() + text.size());
    to_ += '"';
    for (size_t at = 0; at < text.size();) {
      const size_t begin = at;
      const char32_t c = next_point(text, at);
      if (c == '"' || c == '\\' || c < 0x20 || (style_.ascii && c >= 0x80)) {
        append_escape(c, to_);
      } else {
        to_.append(text, begin, at - begin);
      }
    }
    to_ += '"';
  }

  void begin_item(bool first) {
    if (!first) to_ += style_.item_separator;
    if (style_.pretty) new_line();
  }

  void new_line() {
    budget_.check_text(to_.size() + static_cast<size_t>(level_) * style_.indent.size());
    to_ += '\n';
    for (int i = 0; i < level_; ++i) to_ += style_.indent;
  }

  void end_items(char close) {
    --level_;
    if (style_.pretty) new_line();
    to_ += close;
  }

  void write_list(const List& list) {
    if (list.items.empty()) {
      to_ += "[]";
      return;
    }
    to_ += '[';
    ++level_;
    for (size_t i = 0; i < list.items.size(); ++i) {
      begin_item(i == 0);
      write(list.items[i]);
    }
    end_items(']');
  }

  using Entry = std::pair<Value, Value>;

  static std::vector<const Entry*> ordered_entries(const Dict& dict, bool sorted) {
    std::vector<const Entry*> entries;
    for (const Entry& entry : dict.entries()) {
      if (sorted && !entry.first.is(Type::text)) refuse("tojson(sort_keys=true) with keys that are not strings");
      entries.push_back(&entry);
    }
    if (sorted)
      std::sort(entries.begin(), entries.end(),
                [](const Entry* a, const Entry* b) { return key_less(a->first, b->first); });
    return entries;
  }

  void write_dict(const Dict& dict) {
    if (dict.entries().empty()) {
      to_ += "{}";
      return;
    }
    const std::vector<const Entry*> entries = ordered_entries(dict, style_.sort_keys);
    to_ += '{';
    ++level_;
    for (size_t i = 0; i < entries.size(); ++i) {
      begin_item(i == 0);
      const Value& key = entries[i]->first;
      write_text(key.is(Type::text) ? key.text() : scalar(key));
      to_ += style_.key_separator;
      write(entries[i]->second);
    }
    end_items('}');
  }

  Budget& budget_;
  const JsonStyle& style_;
  std::string& to_;
  int level_ = 0;
};

}  // namespace

std::string to_json(Budget& budget, const Value& value, const JsonStyle& style) {
  std::string text;
  JsonWriter(budget, style, text).write(value);
  budget.check_text(text.size());
  return text;
}

}  // namespace headroom::jinja
