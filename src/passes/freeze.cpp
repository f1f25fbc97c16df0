#include "passes/freeze.h"

#include <algorithm>
#include <charconv>

#include "base/error.h"
#include "base/nearest_name.h"

namespace headroom {
namespace {

std::vector<std::string_view> parts_of(std::string_view name) {
  std::vector<std::string_view> parts;
  for (size_t start = 0; start <= name.size();) {
    const size_t end = std::min(name.find('.', start), name.size());
    parts.push_back(name.substr(start, end - start));
    start = end + 1;
  }
  return parts;
}

bool whole_number(std::string_view text, int64_t& number) {
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), number);
  return status == std::errc() && end == text.data() + text.size() && !text.empty();
}

// "3-5" means 3, 4 and 5.
bool in_range(std::string_view pattern, std::string_view part) {
  const size_t dash = pattern.find('-');
  int64_t first = 0, last = 0, number = 0;
  return dash != std::string_view::npos && whole_number(pattern.substr(0, dash), first) &&
         whole_number(pattern.substr(dash + 1), last) && whole_number(part, number) && number >= first &&
         number <= last;
}

// Wildcards by backtracking to the last star (linear in practice, quadratic at worst).
bool part_means(std::string_view pattern, std::string_view part) {
  if (in_range(pattern, part)) return true;
  size_t p = 0, t = 0, star = std::string_view::npos, mark = 0;
  while (t < part.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      mark = t;
    } else if (p < pattern.size() && pattern[p] == part[t]) {
      ++p;
      ++t;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      t = ++mark;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

}  // namespace

bool pattern_means(std::string_view pattern, std::string_view weight) {
  const std::vector<std::string_view> wanted = parts_of(pattern), parts = parts_of(weight);
  for (size_t start = 0; start + wanted.size() <= parts.size(); ++start) {
    size_t same = 0;
    while (same < wanted.size() && part_means(wanted[same], parts[start + same])) ++same;
    if (same == wanted.size()) return true;
  }
  return false;
}

std::string pattern_without_commas(std::string_view option, std::string_view pattern, std::string_view between) {
  if (pattern.find(',') == std::string_view::npos) return {};
  while (pattern.ends_with(',')) pattern.remove_suffix(1);
  std::string apart;
  for (const char letter : pattern) letter == ',' ? apart += between : apart += letter;
  return fmt::format("no commas between patterns: {} {}", option, apart);
}

std::string_view last_part(std::string_view name) { return name.substr(name.rfind('.') + 1); }

std::set<ValueId> frozen_weights(const Graph& graph, std::span<const std::string> patterns) {
  std::set<ValueId> frozen;
  std::set<std::string> known;
  int64_t weights = 0;
  for (ValueId id = 0; id < static_cast<ValueId>(graph.values.size()); ++id) {
    const Value& value = graph.value(id);
    if (!value.persistent || value.role != Role::parameter) continue;
    ++weights;
    for (const std::string_view part : parts_of(value.name)) known.emplace(part);
    if (std::any_of(patterns.begin(), patterns.end(),
                    [&](const std::string& p) { return pattern_means(p, value.name); }))
      frozen.insert(id);
  }
  const std::vector<std::string> names(known.begin(), known.end());
  for (const std::string& pattern : patterns) {
    const bool means = std::any_of(frozen.begin(), frozen.end(),
                                   [&](ValueId id) { return pattern_means(pattern, graph.value(id).name); });
    if (means) continue;
    const std::string apart = pattern_without_commas("--freeze", pattern, " --freeze ");
    throw Error(ErrorKind::usage, fmt::format("--freeze {} matches no weight of this model", pattern),
                !apart.empty()
                    ? apart
                    : fmt::format("patterns are parts of weight names (layers.0-5, embed_tokens, mlp); did you mean "
                                  "'{}'?",
                                  nearest_name(pattern, names)));
  }
  if (!patterns.empty() && static_cast<int64_t>(frozen.size()) == weights)
    throw Error(ErrorKind::usage, "--freeze leaves nothing to train", "freeze fewer weights");
  return frozen;
}

}  // namespace headroom
