#include "jinja/print.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>

#include "jinja/problem.h"
#include "jinja/text.h"

namespace headroom::jinja {
namespace {

void append_repr(Budget& budget, const Value& value, std::string& to);

void append_escaped(char32_t c, char quote, std::string& to) {
  if (c == U'\n') {
    to += "\\n";
  } else if (c == U'\r') {
    to += "\\r";
  } else if (c == U'\t') {
    to += "\\t";
  } else if (c == U'\\' || c == static_cast<char32_t>(quote)) {
    to += '\\';
    append_point(to, c);
  } else if (is_printable(c)) {
    append_point(to, c);
  } else if (c < 0x100) {
    to += fmt::format("\\x{:02x}", static_cast<uint32_t>(c));
  } else if (c < 0x10000) {
    to += fmt::format("\\u{:04x}", static_cast<uint32_t>(c));
  } else {
    to += fmt::format("\\U{:08x}", static_cast<uint32_t>(c));
  }
}

void append_quoted(Budget& budget, const std::string& text, std::string& to) {
  budget.check_text(to.size() + text.size());
  const bool single = text.find('\'') != std::string::npos, twice = text.find('"') != std::string::npos;
  const char quote = single && !twice ? '"' : '\'';
  to += quote;
  for (size_t at = 0; at < text.size();) append_escaped(next_point(text, at), quote, to);
  to += quote;
}

void append_items(Budget& budget, const List& list, std::string_view open, std::string_view close, std::string& to) {
  to += open;
  for (size_t i = 0; i < list.items.size(); ++i) {
    if (i > 0) to += ", ";
    append_repr(budget, list.items[i], to);
  }
  to += close;
}

void append_list(Budget& budget, const List& list, std::string& to) {
  switch (list.kind) {
    case ListKind::list:
      return append_items(budget, list, "[", "]", to);
    case ListKind::tuple:
      return append_items(budget, list, "(", list.items.size() == 1 ? ",)" : ")", to);
    case ListKind::keys:
      return append_items(budget, list, "dict_keys([", "])", to);
    case ListKind::values:
      return append_items(budget, list, "dict_values([", "])", to);
    case ListKind::items:
      return append_items(budget, list, "dict_items([", "])", to);
    case ListKind::range:
      refuse("printing a range");
    case ListKind::generator:
      refuse("printing what a filter yields without '|list'");
  }
}

void append_dict(Budget& budget, const Dict& dict, std::string& to) {
  to += '{';
  for (bool first = true; const auto& [key, value] : dict.entries()) {
    if (!first) to += ", ";
    first = false;
    append_repr(budget, key, to);
    to += ": ";
    append_repr(budget, value, to);
  }
  to += '}';
}

void append_repr(Budget& budget, const Value& value, std::string& to) {
  budget.step();
  budget.check_text(to.size());
  switch (value.type()) {
    case Type::none:
      to += "None";
      return;
    case Type::undefined:
      to += "Undefined";
      return;
    case Type::boolean:
      to += value.boolean() ? "True" : "False";
      return;
    case Type::integer:
      to += std::to_string(value.integer());
      return;
    case Type::real:
      to += print_real(value.number());
      return;
    case Type::text:
      if (value.text_ref()->markup) refuse("printing a list of texts marked as safe");
      return append_quoted(budget, value.text(), to);
    case Type::list:
      return append_list(budget, value.list(), to);
    case Type::dict:
      return append_dict(budget, value.dict(), to);
    default:
      refuse(fmt::format("printing a {}", type_name(value)));
  }
}

}  // namespace

std::string print_real(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  char buffer[64];
  const double size = std::fabs(value);
  const bool plain = size == 0 || (size >= 1e-4 && size < 1e16);
  const auto format = plain ? std::chars_format::fixed : std::chars_format::scientific;
  const auto end = std::to_chars(buffer, buffer + sizeof(buffer), value, format).ptr;
  std::string text(buffer, end);
  if (plain && text.find('.') == std::string::npos) text += ".0";
  return text;
}

std::string to_text(Budget& budget, const Value& value) {
  if (value.is(Type::text)) return value.text();
  std::string text;
  if (!value.is(Type::undefined)) append_repr(budget, value, text);
  budget.check_text(text.size());
  return text;
}

std::string_view text_view(Budget& budget, const Value& value, std::string& buffer) {
  if (value.is(Type::text)) return value.text();
  buffer = to_text(budget, value);
  return buffer;
}

}  // namespace headroom::jinja
