#include "formats/json.h"

#include <algorithm>

#include "base/error.h"
#include "formats/file.h"
#include "formats/json_members.h"
#include "formats/ordered_json.h"

namespace headroom {
namespace {

constexpr int kMaxDepth = 64;
constexpr size_t kMaxReason = 200;

// The parser takes a NUL for the end of the text and would ignore the rest.
void refuse_nul(std::string_view text, const std::string& source) {
  const size_t at = text.find('\0');
  if (at != std::string_view::npos)
    throw Error(ErrorKind::format, fmt::format("{}: malformed JSON: a NUL byte at byte {}", source, at),
                "correct or re-download the file");
}

// The parser's message quotes the file: at most kMaxReason bytes of it, in printable ASCII.
std::string printable(std::string_view reason) {
  std::string out;
  for (const char c : reason) {
    const std::string piece =
        c >= ' ' && c <= '~' ? std::string(1, c) : fmt::format("\\x{:02x}", static_cast<uint8_t>(c));
    if (out.size() + piece.size() > kMaxReason) return out + "...";
    out += piece;
  }
  return out;
}

void refuse_deep_nesting(std::string_view text, const std::string& source) {
  int depth = 0;
  bool in_string = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\') ++i;
      if (c == '"') in_string = false;
      continue;
    }
    if (c == '"') in_string = true;
    if (c == '{' || c == '[') ++depth;
    if (c == '}' || c == ']') --depth;
    if (depth > kMaxDepth)
      throw Error(ErrorKind::format, fmt::format("{}: nested deeper than {} levels at byte {}", source, kMaxDepth, i),
                  "this is not a file that headroom reads; check the path");
  }
}

template <typename Value>
Value parse(std::string_view text, const std::string& source, const typename Value::parser_callback_t& keeps) {
  refuse_nul(text, source);
  refuse_deep_nesting(text, source);
  try {
    return Value::parse(text, keeps);
  } catch (const typename Value::exception& e) {
    throw Error(ErrorKind::format, fmt::format("{}: malformed JSON: {}", source, printable(e.what())),
                "correct or re-download the file");
  }
}

}  // namespace

Json parse_json(std::string_view text, const std::string& source) { return parse<Json>(text, source, nullptr); }

OrderedJson parse_ordered_json(std::string_view text, const std::string& source) {
  return parse<OrderedJson>(text, source, nullptr);
}

Json read_json_members(const std::filesystem::path& path, std::span<const std::string_view> members,
                       int64_t limit_bytes) {
  const auto keeps = [&](int depth, Json::parse_event_t event, Json& parsed) {
    return event != Json::parse_event_t::key || depth != 1 ||
           std::find(members.begin(), members.end(), parsed.get_ref<const std::string&>()) != members.end();
  };
  return parse<Json>(read_text_file(path, limit_bytes), path.string(), keeps);
}

Json read_json(const std::filesystem::path& path, int64_t limit_bytes) {
  return parse_json(read_text_file(path, limit_bytes), path.string());
}

}  // namespace headroom
