#include <fmt/format.h>

#include "base/error.h"
#include "formats/document.h"
#include "formats/document_limits.h"

namespace headroom {
namespace {

// A recursive descent over RFC 8259, with the bytes of every value.
class JsonReader {
 public:
  JsonReader(std::string_view text, const std::string& source) : text_(text), source_(source) {}

  DocumentNode read() {
    if (text_.substr(0, 3) == "\xEF\xBB\xBF") at_ = 3;
    skip_blank();
    DocumentNode root = read_value(0);
    skip_blank();
    if (at_ < text_.size()) refuse("more text after the end of the document");
    return root;
  }

 private:
  [[noreturn]] void refuse(const std::string& problem) const {
    throw Error(ErrorKind::format, fmt::format("{}:{}: malformed JSON: {}", source_, line_, problem),
                "correct the file at this line");
  }
  char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }

  void skip_blank() {
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == '#' || text_.substr(at_, 2) == "//") {
        while (at_ < text_.size() && text_[at_] != '\n') ++at_;
      } else if (c == ' ' || c == '\t' || c == '\r' || c == '\n') {
        line_ += c == '\n';
        ++at_;
      } else {
        return;
      }
    }
  }

  DocumentNode read_value(int depth) {
    if (depth > kMaxDocumentDepth) refuse(fmt::format("nested deeper than {} levels", kMaxDocumentDepth));
    if (++values_ > kMaxDocumentValues) refuse(fmt::format("more than {} values", kMaxDocumentValues));
    DocumentNode node;
    node.line = line_;
    node.begin = static_cast<int64_t>(at_);
    switch (peek()) {
      case '{':
        read_object(node, depth);
        break;
      case '[':
        read_array(node, depth);
        break;
      case '"':
        node.kind = DocumentNode::Kind::scalar;
        node.quoted = true;
        node.text = read_string();
        break;
      default:
        read_word(node);
    }
    node.end = static_cast<int64_t>(at_);
    return node;
  }

  void read_object(DocumentNode& node, int depth) {
    node.kind = DocumentNode::Kind::mapping;
    ++at_;
    for (skip_blank(); peek() != '}'; skip_blank()) {
      if (peek() != '"') refuse("a key in double quotes was expected");
      DocumentEntry entry;
      entry.line = line_;
      entry.begin = static_cast<int64_t>(at_);
      entry.key = read_string();
      skip_blank();
      if (peek() != ':') refuse(fmt::format("':' was expected after the key \"{}\"", entry.key.substr(0, 60)));
      ++at_;
      skip_blank();
      entry.value = read_value(depth + 1);
      node.entries.push_back(std::move(entry));
      skip_blank();
      if (peek() == ',') {
        ++at_;
      } else if (peek() != '}') {
        refuse("',' or '}' was expected");
      }
    }
    ++at_;
  }

  void read_array(DocumentNode& node, int depth) {
    node.kind = DocumentNode::Kind::sequence;
    ++at_;
    for (skip_blank(); peek() != ']'; skip_blank()) {
      node.items.push_back(read_value(depth + 1));
      skip_blank();
      if (peek() == ',') {
        ++at_;
      } else if (peek() != ']') {
        refuse("',' or ']' was expected");
      }
    }
    ++at_;
  }

  std::string read_string() {
    std::string value;
    for (++at_;; ++at_) {
      if (at_ >= text_.size()) refuse("a string without its closing quote");
      const char c = text_[at_];
      if (c == '"') break;
      if (c == '\n') refuse("a string without its closing quote");
      if (c == '\\') {
        append_escape(value);
      } else {
        value += c;
      }
    }
    ++at_;
    return value;
  }

  // at_ is at the backslash; leaves it at the last byte of the escape.
  void append_escape(std::string& value) {
    constexpr std::string_view kNames = "\"\\/bfnrt";
    constexpr std::string_view kBytes = "\"\\/\b\f\n\r\t";
    ++at_;
    if (at_ >= text_.size()) refuse("a string without its closing quote");
    const size_t index = kNames.find(text_[at_]);
    if (index != std::string_view::npos) {
      value += kBytes[index];
      return;
    }
    if (text_[at_] != 'u' || at_ + 4 >= text_.size()) refuse("an unknown escape in a string");
    uint32_t code = 0;
    for (int digit = 0; digit < 4; ++digit) {
      const char c = text_[++at_];
      const int number = c >= '0' && c <= '9' ? c - '0' : (c | 32) >= 'a' && (c | 32) <= 'f' ? (c | 32) - 'a' + 10 : -1;
      if (number < 0) refuse("an unknown escape in a string");
      code = code * 16 + static_cast<uint32_t>(number);
    }
    append_utf8(value, code);
  }

  // Surrogates are kept one by one (three bytes each): keys and values that matter here are ASCII.
  static void append_utf8(std::string& value, uint32_t code) {
    if (code < 0x80) {
      value += static_cast<char>(code);
    } else if (code < 0x800) {
      value += static_cast<char>(0xC0 | (code >> 6));
      value += static_cast<char>(0x80 | (code & 63));
    } else {
      value += static_cast<char>(0xE0 | (code >> 12));
      value += static_cast<char>(0x80 | ((code >> 6) & 63));
      value += static_cast<char>(0x80 | (code & 63));
    }
  }

  void read_word(DocumentNode& node) {
    const size_t start = at_;
    while (at_ < text_.size() && std::string_view(" \t\r\n,]}#:").find(text_[at_]) == std::string_view::npos) ++at_;
    node.text = std::string(text_.substr(start, at_ - start));
    if (node.text == "null") {
      node.text.clear();
      return;
    }
    const std::string_view word = node.text;
    const bool number = !word.empty() && word.find_first_not_of("+-.0123456789eE") == std::string_view::npos;
    if (!number && word != "true" && word != "false" && word != "NaN" && word != "Infinity" && word != "-Infinity")
      refuse(word.empty() ? "a value was expected" : fmt::format("'{}' is not a value", word.substr(0, 60)));
    node.kind = DocumentNode::Kind::scalar;
  }

  std::string_view text_;
  const std::string& source_;
  size_t at_ = 0;
  int64_t line_ = 1;
  int64_t values_ = 0;
};

}  // namespace

DocumentNode parse_json_document(std::string_view text, const std::string& source) {
  refuse_unreadable_document(text, source);
  return JsonReader(text, source).read();
}

}  // namespace headroom
