#include "jinja/replace.h"

#include <algorithm>

#include "jinja/arguments.h"
#include "jinja/problem.h"

namespace headroom::jinja {
namespace {

// "abc" with x in every gap: "xaxbxcx".
std::string fill_gaps(Budget& budget, std::string_view text, std::string_view with, int64_t most) {
  std::string filled;
  for (size_t at = 0; at <= text.size();) {
    if (most != 0) {
      budget.check_text(filled.size() + with.size());
      filled += with;
      --most;
    }
    if (at == text.size()) break;
    const size_t begin = at;
    next_point(text, at);
    filled += text.substr(begin, at - begin);
    budget.step();
  }
  return filled;
}

}  // namespace

std::string replace(Budget& budget, std::string_view text, std::string_view from, std::string_view to, int64_t most) {
  charge_search(budget, text, from);
  if (from.empty()) return fill_gaps(budget, text, to, most);
  std::string replaced;
  size_t at = 0;
  for (; most != 0; --most) {
    const size_t found = find_text(text, from, at);
    if (found == std::string_view::npos) break;
    budget.check_text(replaced.size() / 64 + to.size());
    if (replaced.size() + (found - at) + to.size() > static_cast<size_t>(budget.limits().text_bytes))
      budget.check_text(replaced.size() + (found - at) + to.size());
    replaced += text.substr(at, found - at);
    replaced += to;
    at = found + from.size();
    budget.step();
  }
  replaced += text.substr(at);
  budget.check_text(replaced.size());
  return replaced;
}

void charge_search(Budget& budget, std::string_view text, std::string_view wanted, bool from_right) {
  const uint64_t each = from_right ? wanted.size() : std::min<size_t>(wanted.size(), 256) / 16;
  budget.touch(text.size() * (each + 1));
}

Value text_list(Budget& budget, ListKind kind, const std::vector<std::string_view>& parts) {
  std::vector<Value> items;
  items.reserve(parts.size());
  for (const std::string_view part : parts) {
    budget.step();
    items.push_back(make_text(budget, std::string(part)));
  }
  return make_list(budget, kind, std::move(items));
}

Charge room_for_parts(Budget& budget, uint64_t parts) {
  return Charge(budget, static_cast<int64_t>(parts * (3 * sizeof(std::string_view) + sizeof(Value))));
}

Charge room_for_lines(Budget& budget, std::string_view text) {
  // Every character that ends a line is a control character or begins with one of these bytes.
  const auto may_end = [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == '\xc2' || c == '\xe2'; };
  return room_for_parts(budget, static_cast<uint64_t>(std::count_if(text.begin(), text.end(), may_end)) + 1);
}

std::string strip_argument(Budget& budget, std::string_view text, Side side, const Value* characters) {
  budget.touch(text.size());
  if (characters == nullptr || characters->is(Type::none)) return std::string(strip(text, side));
  const std::string& set = text_argument("strip", characters);
  if (set.size() > 256) refuse("strip of more than 256 characters");
  budget.touch(text.size() * (set.size() / 4));
  return std::string(strip(text, side, set));
}

}  // namespace headroom::jinja
