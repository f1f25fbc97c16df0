#include "tokenizer/precompiled_step.h"

#include <algorithm>

#include "base/error.h"
#include "tokenizer/base64.h"
#include "tokenizer/graphemes.h"
#include "tokenizer/unicode.h"
#include "tokenizer/utf8.h"

namespace headroom {
namespace {

constexpr size_t kMaxTableBytes = size_t{64} << 20;
// Longer clusters are looked up character by character.
constexpr size_t kMostClusterBytes = 5;

uint32_t read_u32(std::string_view bytes, size_t at) {
  uint32_t value = 0;
  for (size_t i = 4; i-- > 0;) value = value << 8 | static_cast<unsigned char>(bytes[at + i]);
  return value;
}

bool is_leaf(uint32_t unit) { return (unit >> 8 & 1) != 0; }
uint32_t label_of(uint32_t unit) { return unit & (0x80000000U | 0xFF); }
uint32_t value_of(uint32_t unit) { return unit & 0x7FFFFFFFU; }
uint32_t offset_of(uint32_t unit) { return (unit >> 10) << ((unit & 0x200U) >> 6); }

}  // namespace

PrecompiledStep::PrecompiledStep(const Component& component) {
  const Component place = component.member("precompiled_charsmap");
  if (!place.value().is_string()) place.refuse("is not a string");
  const auto& encoded = place.value().get_ref<const std::string&>();
  if (encoded.size() / 4 * 3 > kMaxTableBytes) place.refuse(fmt::format("has more than {} bytes", kMaxTableBytes));
  const std::optional<std::string> bytes = decode_base64(encoded);
  if (!bytes) place.refuse("is not base64");
  if (bytes->size() < 4) place.refuse(fmt::format("has {} bytes, too few for a table", bytes->size()));
  const size_t trie_bytes = read_u32(*bytes, 0);
  if (trie_bytes > bytes->size() - 4 || trie_bytes % 4 != 0 || trie_bytes == 0)
    place.refuse(fmt::format("states a trie of {} bytes, of {}", trie_bytes, bytes->size() - 4));
  units_.resize(trie_bytes / 4);
  for (size_t i = 0; i < units_.size(); ++i) units_[i] = read_u32(*bytes, 4 + 4 * i);
  texts_ = bytes->substr(4 + trie_bytes);
  texts_.push_back('\0');
  texts_.shrink_to_fit();
  check(place);
}

// Visits every unit that a search can reach: none may lead out of the table.
void PrecompiledStep::check(const Component& place) {
  struct Node {
    uint32_t children;
    uint32_t depth;  // of the children
  };
  std::vector<bool> seen(units_.size(), false);
  std::vector<Node> open;
  const auto enter = [&](uint32_t unit_at, uint32_t depth) {
    const uint32_t children = children_of(unit_at);
    if (children >= units_.size() || (children | 0xFF) >= units_.size())
      place.refuse(fmt::format("unit {} leads out of the trie", unit_at));
    if (is_leaf(units_[unit_at]) && depth > 0) {
      const uint32_t offset = value_of(units_[children]);
      if (offset >= texts_.size()) place.refuse(fmt::format("unit {} leads out of the texts", children));
      const std::string_view text = text_at(offset);
      if (check_utf8(text).valid != text.size()) place.refuse(fmt::format("the text at {} is not UTF-8", offset));
      growth_ = std::max(growth_, (static_cast<int64_t>(text.size()) + depth - 1) / depth);
    }
    if (!seen[children] && depth < kMostClusterBytes) open.push_back({children, depth});
    seen[children] = true;
  };
  enter(0, 0);
  for (size_t i = 0; i < open.size(); ++i)
    for (unsigned byte = 1; byte < 256; ++byte)
      if (const uint32_t next = child(open[i].children, static_cast<unsigned char>(byte)); next != kNone)
        enter(next, open[i].depth + 1);
  for (size_t i = 0; i < unicode::grapheme_classes_size; ++i) {
    const unicode::Run& run = unicode::grapheme_classes[i];
    if (static_cast<GraphemeClass>(run.value) != GraphemeClass::prepend) continue;
    for (char32_t code = run.first; code <= run.last; ++code) {
      std::string character;
      append_utf8(code, character);
      has_prepend_keys_ = has_prepend_keys_ || look_up(character) || has_longer_key(character);
    }
  }
}

uint32_t PrecompiledStep::children_of(uint32_t unit_at) const { return unit_at ^ offset_of(units_[unit_at]); }

uint32_t PrecompiledStep::child(uint32_t children, unsigned char byte) const {
  const uint32_t at = children ^ byte;
  return label_of(units_[at]) == byte ? at : kNone;
}

std::string_view PrecompiledStep::text_at(uint32_t offset) const {
  const std::string_view texts = texts_;
  return texts.substr(offset, texts.find('\0', offset) - offset);
}

std::optional<std::string_view> PrecompiledStep::look_up(std::string_view text) const {
  uint32_t children = children_of(0);
  for (const char c : text) {
    if (c == '\0') break;
    const uint32_t at = child(children, static_cast<unsigned char>(c));
    if (at == kNone) break;
    children = children_of(at);
    if (is_leaf(units_[at])) return text_at(value_of(units_[children]));
  }
  return std::nullopt;
}

bool PrecompiledStep::has_longer_key(std::string_view text) const {
  uint32_t children = children_of(0);
  for (const char c : text) {
    if (c == '\0') return false;
    const uint32_t at = child(children, static_cast<unsigned char>(c));
    if (at == kNone) return false;
    children = children_of(at);
  }
  for (unsigned byte = 1; byte < 256; ++byte)
    if (child(children, static_cast<unsigned char>(byte)) != kNone) return true;
  return false;
}

std::string PrecompiledStep::apply(std::string text, bool) const {
  std::string result;
  result.reserve(text.size());
  const std::string_view all = text;
  for (size_t at = 0; at < all.size();) {
    const size_t end = grapheme_end(all, at);
    const std::string_view cluster = all.substr(at, end - at);
    at = end;
    if (cluster.size() <= kMostClusterBytes) {
      if (const auto found = look_up(cluster)) {
        result += *found;
        continue;
      }
    }
    for (size_t i = 0; i < cluster.size();) {
      const std::string_view character = cluster.substr(i, decode_utf8(cluster, i).bytes);
      result += look_up(character).value_or(character);
      i += character.size();
    }
  }
  return result;
}

// The left character must be looked up alone: it is a cluster by itself, or ends one of more than five bytes. The right
// one begins a cluster, so no key may depend on what follows it.
bool PrecompiledStep::allows_cut(const Boundary& boundary, BoundaryChoices& after) const {
  if (has_prepend_keys_ || !graphemes_always_break(boundary.left, boundary.right)) return false;
  switch (grapheme_class(boundary.left)) {
    case GraphemeClass::extend:
    case GraphemeClass::non_joiner:
    case GraphemeClass::linker:
    case GraphemeClass::joiner:
    case GraphemeClass::spacing_mark:
    case GraphemeClass::prepend:
      return false;
    default:
      break;
  }
  std::string left, right;
  append_utf8(boundary.left, left);
  append_utf8(boundary.right, right);
  const std::optional<std::string_view> left_text = look_up(left), right_text = look_up(right);
  if (!right_text && has_longer_key(right)) return false;
  if (left_text) left = *left_text;
  if (right_text) right = *right_text;
  if (left.empty() || right.empty() || boundary.left == '\n') return false;
  after.add(decode_utf8(left, previous_utf8(left, left.size())).code, decode_utf8(right, 0).code);
  return true;
}

}  // namespace headroom
