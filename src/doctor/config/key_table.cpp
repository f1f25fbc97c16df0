#include "doctor/config/key_table.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/nearest_name.h"

namespace headroom::doctor {
namespace {

bool matches(std::string_view pattern, std::string_view key) {
  if (pattern.ends_with('*')) return key.starts_with(pattern.substr(0, pattern.size() - 1));
  return pattern == key;
}

// Calls visit(word) for each blank-separated word until it returns true.
template <typename Visit>
bool any_word(std::string_view words, Visit visit) {
  size_t start = 0;
  while ((start = words.find_first_not_of(' ', start)) != std::string_view::npos) {
    const size_t end = std::min(words.find(' ', start), words.size());
    if (visit(words.substr(start, end - start))) return true;
    start = end;
  }
  return false;
}

const KeyRule* own_rule(const Dialect& dialect, std::string_view key) {
  for (const KeyRule& rule : dialect.rules)
    if (rule.key == key) return &rule;
  for (const KeyRule& rule : dialect.rules)
    if (matches(rule.key, key)) return &rule;
  return nullptr;
}

const Irrelevant* find_irrelevant(const Dialect& dialect, std::string_view key) {
  for (const Irrelevant& group : dialect.irrelevant)
    if (any_word(group.keys, [&](std::string_view pattern) { return matches(pattern, key); })) return &group;
  for (const DialectOf base : dialect.bases)
    if (const Irrelevant* group = find_irrelevant(base(), key)) return group;
  return nullptr;
}

const KeyRule* rule_by_name(const Dialect& dialect, std::string_view key) {
  if (const KeyRule* rule = own_rule(dialect, key)) return rule;
  for (const DialectOf base : dialect.bases)
    if (const KeyRule* rule = rule_by_name(base(), key)) return rule;
  return nullptr;
}

const Renamed* find_renamed(const Dialect& dialect, std::string_view key) {
  for (const Renamed& renamed : dialect.renamed)
    if (renamed.old_key == key) return &renamed;
  for (const DialectOf base : dialect.bases)
    if (const Renamed* renamed = find_renamed(base(), key)) return renamed;
  return nullptr;
}

void add_known_keys(const Dialect& dialect, std::vector<std::string>& keys) {
  for (const KeyRule& rule : dialect.rules)
    if (!rule.key.ends_with('*')) keys.emplace_back(rule.key);
  for (const Irrelevant& group : dialect.irrelevant)
    any_word(group.keys, [&](std::string_view key) {
      if (!key.ends_with('*')) keys.emplace_back(key);
      return false;
    });
  for (const DialectOf base : dialect.bases) add_known_keys(base(), keys);
}

KeyNote note_of(const Setting& setting, std::string text) {
  return {setting.origin, std::move(text), setting.is_null ? "null" : setting.text.substr(0, 200)};
}

void apply_rule(const KeyRule& rule, const Setting& setting, Draft& draft) {
  if (setting.is_null) {
    draft.job.keys.understood.push_back(note_of(setting, fmt::format("{}: left at its default", rule.field)));
    return;
  }
  if (!setting.unreadable.empty()) {
    draft.job.keys.unreadable.push_back(note_of(setting, setting.unreadable));
    return;
  }
  const std::string_view problem = rule.apply(draft, setting, rule);
  if (problem.empty()) {
    draft.job.keys.understood.push_back(note_of(setting, std::string(rule.field)));
  } else {
    draft.job.keys.unreadable.push_back(note_of(setting, std::string(problem)));
  }
}

// The nearest known key, unless more than a third of the letters differ.
std::string suggestion(const Dialect& dialect, const std::string& key) {
  if (key.size() > 100) return {};
  const std::vector<std::string> keys = known_keys(dialect);
  const std::string nearest = nearest_name(key, keys);
  if (nearest.empty()) return {};
  size_t same = 0;
  for (size_t i = 0; i < std::min(nearest.size(), key.size()) && nearest[i] == key[i]; ++i) ++same;
  size_t tail = 0;
  while (tail + same < std::min(nearest.size(), key.size()) &&
         nearest[nearest.size() - 1 - tail] == key[key.size() - 1 - tail])
    ++tail;
  return 3 * (same + tail) >= 2 * std::max(nearest.size(), key.size()) ? nearest : std::string();
}

void finish_once(const Dialect& dialect, std::vector<const Dialect*>& done, Draft& draft) {
  if (std::find(done.begin(), done.end(), &dialect) != done.end()) return;
  done.push_back(&dialect);
  for (const DialectOf base : dialect.bases) finish_once(base(), done, draft);
  if (dialect.finish) dialect.finish(draft);
}

}  // namespace

const KeyRule* find_rule(const Dialect& dialect, std::string_view key) {
  if (const KeyRule* rule = rule_by_name(dialect, key)) return rule;
  const Renamed* renamed = find_renamed(dialect, key);
  return renamed ? rule_by_name(dialect, renamed->key) : nullptr;
}

bool knows_key(const Dialect& dialect, std::string_view key) {
  return rule_by_name(dialect, key) || find_irrelevant(dialect, key) || find_renamed(dialect, key);
}

std::vector<std::string> known_keys(const Dialect& dialect) {
  std::vector<std::string> keys;
  add_known_keys(dialect, keys);
  return keys;
}

void apply_setting(const Dialect& dialect, const Setting& setting, Draft& draft) {
  const std::string path = dialect.rewrite ? dialect.rewrite(setting.path) : setting.path;
  std::string_view key = path;
  if (const Renamed* renamed = find_renamed(dialect, key)) {
    if (!renamed->since.empty())
      draft.correct(setting.origin, fmt::format("{}: {}", renamed->key, renamed->since), setting.text);
    key = renamed->key;
  }
  if (const KeyRule* rule = rule_by_name(dialect, key)) return apply_rule(*rule, setting, draft);
  if (const Irrelevant* group = find_irrelevant(dialect, key)) {
    draft.job.keys.irrelevant.push_back(note_of(setting, std::string(group->why)));
    return;
  }
  constexpr size_t kSuggestions = 200;  // a file with more unknown keys belongs to another program
  const bool suggests = draft.job.keys.unknown.size() < kSuggestions;
  draft.job.keys.unknown.push_back(note_of(setting, suggests ? suggestion(dialect, path) : std::string()));
}

void finish_dialects(std::span<const Dialect* const> dialects, Draft& draft) {
  std::vector<const Dialect*> done;
  for (const Dialect* dialect : dialects) finish_once(*dialect, done, draft);
}

}  // namespace headroom::doctor
