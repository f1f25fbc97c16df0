// Edits of YAML and JSON.
#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "doctor/config/patch_text.h"
#include "doctor/config/setting.h"
#include "formats/document.h"

namespace headroom::doctor {
namespace {

struct Place {
  const DocumentNode* parent = nullptr;  // the innermost existing mapping of the path
  const DocumentEntry* entry = nullptr;  // the key itself, if it exists
  std::vector<std::string> missing;      // parts of the path below `parent`
};

// Keys may contain dots: the longest match is taken.
Place find_place(const DocumentNode& root, const std::vector<std::string>& parts, int64_t line) {
  Place place{&root, nullptr, parts};
  while (!place.missing.empty()) {
    const DocumentEntry* found = nullptr;
    std::string key;
    size_t used = 0;
    for (size_t count = 1; count <= place.missing.size(); ++count) {
      key += (count > 1 ? "." : "") + place.missing[count - 1];
      for (const DocumentEntry& entry : place.parent->entries)
        if (entry.key == key && (count < place.missing.size() || line == 0 || entry.line == line || !found)) {
          found = &entry;
          used = count;
        }
    }
    if (!found) return place;
    place.missing.erase(place.missing.begin(), place.missing.begin() + static_cast<std::ptrdiff_t>(used));
    if (place.missing.empty()) {
      place.entry = found;
    } else if (found->value.kind == DocumentNode::Kind::mapping) {
      place.parent = &found->value;
    } else {
      place.entry = found;  // a scalar or nothing where a section is needed
      return place;
    }
  }
  return place;
}

std::vector<std::string> parts_of(const Edit& edit, const std::string& name) {
  std::vector<std::string> parts;  // spaces included: a quoted key may end in one
  for (size_t start = 0; start <= edit.key.size();) {
    const size_t end = std::min(edit.key.find('.', start), edit.key.size());
    parts.push_back(edit.key.substr(start, end - start));
    start = end + 1;
  }
  if (edit.key.empty() || edit.key.find("[]") != std::string::npos)
    throw Error(ErrorKind::usage, fmt::format("{}: '{}' names no single key", name, edit.key), "name one key");
  return parts;
}

bool is_plain_json(const std::string& value) {
  if (value == "true" || value == "false" || value == "null") return true;
  if (!value.empty() && (value[0] == '[' || value[0] == '{' || value[0] == '"')) return true;
  return real_number(value).has_value() && value.find('_') == std::string::npos;
}

std::string json_string(const std::string& value) {
  std::string result = "\"";
  for (const char c : value) {
    if (c == '"' || c == '\\') result += '\\';
    result += c;
  }
  return result + "\"";
}

std::string json_value(const std::string& value) {
  if (value == "True" || value == "False") return lower(value);
  return is_plain_json(value) ? value : json_string(value);
}

size_t line_start(const std::string& text, int64_t at) {
  const size_t before = at == 0 ? std::string::npos : text.rfind('\n', static_cast<size_t>(at) - 1);
  return before == std::string::npos ? 0 : before + 1;
}
size_t line_end(const std::string& text, size_t at) { return std::min(text.find('\n', at), text.size()); }

std::string indentation(const std::string& text, int64_t at) {
  const size_t start = line_start(text, at);
  const size_t first = std::min(text.find_first_not_of(" \t", start), text.size());
  return text.substr(start, first - start);
}

// A YAML scalar that reads back as this text, quoted like the old value or where needed.
std::string yaml_value(const std::string& value, char old_quote) {
  if (!value.empty() && (value[0] == '[' || value[0] == '{' || value[0] == '"' || value[0] == '\'')) return value;
  if (old_quote == '"') return json_string(value);
  const bool special = value.empty() || std::string_view("-?:,&*!|>%@`# ").find(value[0]) != std::string_view::npos ||
                       value.find(": ") != std::string::npos || value.find(" #") != std::string::npos ||
                       value.find('\'') != std::string::npos || value.back() == ' ' || value.back() == ':';
  if (old_quote == '\'' && value.find('\'') == std::string::npos) return "'" + value + "'";
  return special && !real_number(value) ? json_string(value) : value;
}

// The offset after the last line of a block mapping's entries.
size_t block_end(const std::string& text, const DocumentNode& mapping, int64_t column) {
  size_t at = line_end(text, static_cast<size_t>(mapping.entries.back().begin));
  size_t end = at;
  while (at < text.size()) {
    const size_t next = line_end(text, at + 1);
    const std::string_view line = std::string_view(text).substr(at + 1, next - at - 1);
    const size_t first = line.find_first_not_of(" \t\r");
    if (first != std::string_view::npos) {
      const bool item = line[first] == '-' && static_cast<int64_t>(first) == column;  // a list at its key's column
      if (static_cast<int64_t>(first) <= column && !item) break;
      end = next;
    }
    at = next;
  }
  return end;
}

std::string nested_yaml(const std::vector<std::string>& missing, const std::string& indent, const std::string& value) {
  std::string lines, deeper = indent;
  for (size_t i = 0; i < missing.size(); ++i) {
    lines += deeper + missing[i] + (i + 1 < missing.size() ? ":\n" : ": " + yaml_value(value, '\0') + "\n");
    deeper += "  ";
  }
  return lines;
}

// { a: 1 }: inserts after the last value, on a separate line if that value has one, with the key quoted like its
// neighbours.
std::string add_in_braces(const std::string& text, const DocumentNode& mapping, const std::vector<std::string>& missing,
                          const std::string& value) {
  const auto key = [&](const std::string& name) {
    return text[static_cast<size_t>(mapping.entries.front().begin)] == '"' ? json_string(name) : name;
  };
  std::string member = key(missing.front()) + ": ", closing;
  for (size_t i = 1; i < missing.size(); ++i) {
    member += "{" + key(missing[i]) + ": ";
    closing += "}";
  }
  member += yaml_value(value, '\0') + closing;
  const DocumentEntry& last = mapping.entries.back();
  const bool own_line = text.find('\n', static_cast<size_t>(mapping.begin)) < static_cast<size_t>(last.begin);
  const std::string lead = own_line ? "\n" + indentation(text, last.begin) : " ";
  return splice(text, last.value.end, last.value.end, "," + lead + member);
}

std::string add_yaml(const std::string& text, const Place& place, const Edit& edit, const std::string& name) {
  const DocumentNode& parent = *place.parent;
  if (parent.entries.empty())
    return text + (text.empty() || text.back() == '\n' ? "" : "\n") + nested_yaml(place.missing, "", edit.value);
  const DocumentEntry& sibling = parent.entries.front();
  if (parent.end > 0 && parent.entries.back().value.end == 0)
    refuse(name, parent.entries.back().line, edit.key, "the value before it spans lines or comes by an alias");
  if (parent.end > 0) return add_in_braces(text, parent, place.missing, edit.value);
  if (sibling.begin == 0 && sibling.value.begin == 0 && sibling.line > 1)
    refuse(name, sibling.line, edit.key, "its section comes by an alias");
  const std::string indent = indentation(text, sibling.begin);
  const size_t end = block_end(text, parent, static_cast<int64_t>(indent.size()));
  std::string lines = nested_yaml(place.missing, indent, edit.value);
  lines.pop_back();
  return text.substr(0, end) + (end > 0 ? "\n" : "") + lines + text.substr(end);
}

// Writes `key: null` as `key:`, so that a section can follow.
std::string without_null(const std::string& text, const DocumentNode& null) {
  size_t start = static_cast<size_t>(null.begin);
  while (start > 0 && text[start - 1] == ' ') --start;
  return splice(text, static_cast<int64_t>(start), null.end, "");
}

// `key:` without a value: the value goes after the colon.
std::string fill_empty(const std::string& text, const DocumentEntry& entry, const std::string& value) {
  const size_t line_stop = line_end(text, static_cast<size_t>(entry.begin));
  const size_t colon = text.find(':', static_cast<size_t>(entry.begin) + entry.key.size());
  const size_t at = std::min(colon + 1, line_stop);
  return text.substr(0, at) + " " + value + text.substr(at);
}

}  // namespace

std::string patch_yaml(const std::string& name, const std::string& text, const Edit& edit) {
  const DocumentNode root = parse_yaml_document(text, name);
  const Place place = find_place(root, parts_of(edit, name), edit.line);
  if (!place.entry) return edit.remove ? text : add_yaml(text, place, edit, name);
  const DocumentEntry& entry = *place.entry;
  const DocumentNode& value = entry.value;
  if (!place.missing.empty()) {
    if (value.kind != DocumentNode::Kind::null)
      refuse(name, entry.line, edit.key, "a value stands where its section belongs");
    if (value.end > value.begin) return patch_yaml(name, without_null(text, value), edit);
    const std::string indent = indentation(text, entry.begin) + "  ";
    const size_t end = line_end(text, static_cast<size_t>(entry.begin));
    std::string lines = nested_yaml(place.missing, indent, edit.value);
    lines.pop_back();
    return text.substr(0, end) + "\n" + lines + text.substr(end);
  }
  if (edit.remove) {
    const size_t start = line_start(text, entry.begin);
    const size_t end = std::min(line_end(text, static_cast<size_t>(std::max(value.end, entry.begin))) + 1, text.size());
    if (value.end == 0 && value.kind != DocumentNode::Kind::null)
      refuse(name, entry.line, edit.key, "its value spans lines");
    return text.substr(0, start) + text.substr(end);
  }
  if (value.kind == DocumentNode::Kind::null && value.end <= value.begin)
    return fill_empty(text, entry, yaml_value(edit.value, '\0'));
  if (value.end <= value.begin) refuse(name, entry.line, edit.key, "its value spans lines or comes by an alias");
  return splice(text, value.begin, value.end, yaml_value(edit.value, text[static_cast<size_t>(value.begin)]));
}

std::string patch_json(const std::string& name, const std::string& text, const Edit& edit) {
  const DocumentNode root = parse_json_document(text, name);
  const Place place = find_place(root, parts_of(edit, name), edit.line);
  if (edit.remove) refuse(name, 1, edit.key, "keys of JSON are set, not removed");
  if (place.entry && place.missing.empty())
    return splice(text, place.entry->value.begin, place.entry->value.end, json_value(edit.value));
  if (place.entry) refuse(name, place.entry->line, edit.key, "a value stands where its section belongs");
  const DocumentNode& parent = *place.parent;
  std::string member, closing;
  for (size_t i = 0; i < place.missing.size(); ++i) {
    const bool last = i + 1 == place.missing.size();
    member += json_string(place.missing[i]) + ": " + (last ? json_value(edit.value) : "{");
    closing += last ? "" : "}";
  }
  member += closing;
  if (parent.entries.empty()) return splice(text, parent.begin, parent.end, "{" + member + "}");
  const DocumentEntry& last = parent.entries.back();
  const bool own_line = text.find('\n', static_cast<size_t>(parent.begin)) < static_cast<size_t>(last.begin);
  const std::string lead = own_line ? ",\n" + indentation(text, last.begin) : ", ";
  return splice(text, last.value.end, last.value.end, lead + member);
}

}  // namespace headroom::doctor
