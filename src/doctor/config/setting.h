// One key with its value, wherever it was written.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "doctor/config/job.h"
#include "formats/document.h"

namespace headroom::doctor {

struct Setting {
  std::string path;  // for tables: dotted, '-' written '_', without leading dashes
  Origin origin;     // as the user wrote it
  std::string text;  // of a scalar; of a Python name or call: the dotted name
  bool is_null = false;
  bool is_list = false;
  bool quoted = false;             // in YAML "no" is a word, no is false
  std::vector<std::string> items;  // of a list, and of a scalar: itself
  std::string unreadable;          // non-empty: why the value cannot be known ("$BATCH is not set here")
};

// The setting that a leaf of a document makes. `prefix` goes in front of its path.
Setting setting_of(const DocumentLeaf& leaf, const std::string& file);
// '-' to '_', leading dashes removed; dots stay.
std::string table_key(std::string_view key);

// What a value says; nullopt when it says no such thing. Numbers may be written 5e8, 1_000, 4.0 and, quoted or not, as
// text; truth values as Python, YAML 1.1 and HfArgumentParser take them.
std::optional<bool> truth(const Setting& setting);
std::optional<int64_t> whole_number(const Setting& setting);
std::optional<double> real_number(const Setting& setting);
std::optional<int64_t> whole_number(std::string_view text);
std::optional<double> real_number(std::string_view text);

std::string lower(std::string_view text);
// Words between any of `separators`, without blanks around them and without empty ones.
std::vector<std::string> split_words(std::string_view text, std::string_view separators);

}  // namespace headroom::doctor
