#include "tokenizer/pattern_class_parser.h"

#include <array>

#include "base/error.h"
#include "tokenizer/utf8.h"

namespace headroom {
namespace {

using unicode::bit;
using unicode::Category;

struct Property {
  std::string_view name;
  uint16_t categories;
};

constexpr uint16_t kControl = bit(Category::Cc);

constexpr std::array<Property, 23> kProperties = {{{"L", unicode::kLetter},
                                                   {"Letter", unicode::kLetter},
                                                   {"Lu", bit(Category::Lu)},
                                                   {"Ll", bit(Category::Ll)},
                                                   {"Lt", bit(Category::Lt)},
                                                   {"Lm", bit(Category::Lm)},
                                                   {"Lo", bit(Category::Lo)},
                                                   {"M", unicode::kMark},
                                                   {"Mark", unicode::kMark},
                                                   {"N", unicode::kNumber},
                                                   {"Number", unicode::kNumber},
                                                   {"Nd", bit(Category::Nd)},
                                                   {"Nl", bit(Category::Nl)},
                                                   {"No", bit(Category::No)},
                                                   {"P", unicode::kPunctuation},
                                                   {"Punctuation", unicode::kPunctuation},
                                                   {"Pc", bit(Category::Pc)},
                                                   {"S", unicode::kSymbol},
                                                   {"Symbol", unicode::kSymbol},
                                                   {"Z", unicode::kSeparator},
                                                   {"Separator", unicode::kSeparator},
                                                   {"Zs", bit(Category::Zs)},
                                                   {"Cc", kControl}}};

// \p{Name}, \P{Name}, \p{^Name}, with the reader after the p.
void add_property(PatternReader& reader, bool outside, CharSet& set) {
  if (!reader.take('{')) reader.refuse("\\p without {}");
  if (reader.take('^')) outside = !outside;
  const size_t end = reader.rest().find('}');
  const std::string_view name = end == std::string_view::npos ? std::string_view() : reader.rest().substr(0, end);
  for (const Property& property : kProperties) {
    if (property.name != name) continue;
    reader.position += end + 1;
    const auto categories = static_cast<uint16_t>(outside ? ~property.categories : property.categories);
    set.add_categories(categories);
    return;
  }
  reader.refuse("this property");
}

char32_t read_hex(PatternReader& reader, size_t least, size_t most) {
  char32_t value = 0;
  size_t digits = 0;
  for (; digits < most && !reader.done(); ++digits) {
    const char c = reader.rest()[0];
    const char lower = static_cast<char>(c | 0x20);
    const bool letter = lower >= 'a' && lower <= 'f';
    if (!letter && (c < '0' || c > '9')) break;
    value = value * 16 + static_cast<char32_t>(letter ? lower - 'a' + 10 : c - '0');
    ++reader.position;
  }
  if (digits < least || value > 0x10FFFF) reader.refuse("this hexadecimal escape");
  return value;
}

char32_t read_code_escape(PatternReader& reader, char kind) {
  if (kind == 'u') return read_hex(reader, 4, 4);
  if (!reader.take('{')) return read_hex(reader, 1, 2);
  const char32_t code = read_hex(reader, 1, 8);
  if (!reader.take('}')) reader.refuse("this hexadecimal escape");
  return code;
}

// The control character that a letter means after a backslash, -1 for other letters.
int control_escape(char letter) {
  switch (letter) {
    case 'n':
      return '\n';
    case 'r':
      return '\r';
    case 't':
      return '\t';
    case 'f':
      return '\f';
    case 'v':
      return '\v';
    case 'a':
      return '\a';
    case 'e':
      return 0x1B;
    default:
      return -1;
  }
}

// The upper end of a range with lower end `first`; `first` itself if there is no range.
char32_t read_range_end(PatternReader& reader, char32_t first) {
  const std::string_view rest = reader.rest();
  if (rest.size() < 2 || rest[0] != '-' || rest[1] == ']') return first;
  ++reader.position;
  if (reader.at('[')) reader.refuse("a class within a class");
  CharSet ignored;
  const int32_t last = reader.at('\\') ? add_pattern_escape(reader, ignored) : static_cast<int32_t>(reader.next_char());
  if (last < 0 || static_cast<char32_t>(last) < first) reader.refuse("this range");
  return static_cast<char32_t>(last);
}

}  // namespace

bool PatternReader::take(char c) {
  if (!at(c)) return false;
  ++position;
  return true;
}

bool PatternReader::take(std::string_view s) {
  if (!rest().starts_with(s)) return false;
  position += s.size();
  return true;
}

char32_t PatternReader::next_char() {
  const Utf8Char next = decode_utf8(text, position);
  position += next.bytes;
  return next.code;
}

void PatternReader::refuse(std::string_view what) const {
  throw Error(
      ErrorKind::format,
      fmt::format("{}: the pattern {} has something unsupported at byte {}: {}", place, text, position, what),
      "use a model with another tokenizer, or tokenise the data elsewhere into rows of {\"input_ids\", \"labels\"}");
}

int32_t add_pattern_escape(PatternReader& reader, CharSet& set) {
  ++reader.position;
  if (reader.done()) reader.refuse("a backslash at the end");
  if (static_cast<unsigned char>(reader.rest()[0]) >= 0x80) reader.refuse("an escape beyond ASCII");
  const char kind = reader.next_byte();
  switch (kind) {
    case 's':
    case 'S':
      set.add_spaces(kind == 's');
      return -1;
    case 'w':
    case 'W':
      set.add_words(kind == 'w');
      return -1;
    case 'd':
      set.add_categories(bit(Category::Nd));
      return -1;
    case 'D':
      set.add_categories(static_cast<uint16_t>(~bit(Category::Nd)));
      return -1;
    case 'p':
    case 'P':
      add_property(reader, kind == 'P', set);
      return -1;
    default:
      break;
  }
  char32_t code = static_cast<unsigned char>(kind);
  const bool letter_or_digit = ((kind | 0x20) >= 'a' && (kind | 0x20) <= 'z') || (kind >= '0' && kind <= '9');
  if (kind == 'x' || kind == 'u') {
    code = read_code_escape(reader, kind);
  } else if (letter_or_digit) {
    const int control = control_escape(kind);
    if (control < 0) reader.refuse("this escape");
    code = static_cast<char32_t>(control);
  }
  set.add_range(code, code);
  return static_cast<int32_t>(code);
}

CharSet read_pattern_class(PatternReader& reader) {
  ++reader.position;
  CharSet set;
  set.put_in_brackets();
  const bool negated = reader.take('^');
  for (bool first = true; first || !reader.at(']'); first = false) {
    if (reader.done()) reader.refuse("a class without its closing ]");
    if (first && reader.at(']')) reader.refuse("a class that begins with ]");
    if (reader.at('[') || reader.rest().starts_with("&&")) reader.refuse("a class within a class");
    int32_t code = 0;
    if (reader.at('\\'))
      code = add_pattern_escape(reader, set);
    else
      code = static_cast<int32_t>(reader.next_char());
    if (code >= 0) set.add_range(static_cast<char32_t>(code), read_range_end(reader, static_cast<char32_t>(code)));
  }
  ++reader.position;
  if (negated) set.negate();
  return set;
}

}  // namespace headroom
