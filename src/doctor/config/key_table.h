// The tables that say what each key of a system means for memory, and the one function that applies them.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "doctor/config/draft.h"

namespace headroom::doctor {

struct KeyRule;
// Puts a value into the draft. Returns why the value says nothing, empty when it did.
using Apply = std::string_view (*)(Draft&, const Setting&, const KeyRule&);

// A key that bears on memory. Its path is in snake case; "optimizer.*" stands for every key below.
struct KeyRule {
  std::string_view key;
  Apply apply;
  std::string_view field;  // name of the Job field, or of the fact it becomes
};

// Keys that take no memory, blank-separated, with the reason. "wandb_*" stands for all that start so.
struct Irrelevant {
  std::string_view why;
  std::string_view keys;
};

// An old or misspelt name; or, with an empty `since`, a short or second name that is as right as the first.
struct Renamed {
  std::string_view old_key, key;
  std::string_view since;  // "transformers 4.41; the old name went in 4.46"
};

struct Dialect;
using DialectOf = const Dialect& (*)();

struct Dialect {
  System system = System::unknown;
  std::string_view name;
  std::span<const KeyRule> rules;
  std::span<const Irrelevant> irrelevant;
  std::span<const Renamed> renamed;
  std::span<const DialectOf> bases;  // looked up after this one's own tables
  // Brings a path into the form of the tables ("fsdp_config.fsdp_x" -> "fsdp_config.x"); may be null.
  std::string (*rewrite)(std::string_view path) = nullptr;
  void (*finish)(Draft&) = nullptr;  // puts facts of several keys together; called once per job
};

// Understands one setting: it ends up in exactly one of the job's lists understood, irrelevant, unknown, unreadable.
void apply_setting(const Dialect& dialect, const Setting& setting, Draft& draft);
// The rule for a key, through renames and bases; null when it has none.
const KeyRule* find_rule(const Dialect& dialect, std::string_view key);
// Is the key in any table of the dialect or its bases, under any name?
bool knows_key(const Dialect& dialect, std::string_view key);
// Names of all rules and single irrelevant keys, for suggestions.
std::vector<std::string> known_keys(const Dialect& dialect);
// Calls the finish functions of the dialect and its bases, bases first, each once.
void finish_dialects(std::span<const Dialect* const> dialects, Draft& draft);

}  // namespace headroom::doctor
