// A key with its value, from any kind of source.
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
  std::string path;  // for table lookup: dotted, '-' written as '_', without leading dashes
  Origin origin;     // as the user wrote it
  std::string text;  // of a scalar; of a Python name or call: the dotted name
  bool is_null = false;
  bool is_list = false;
  bool quoted = false;             // in YAML, quoted "no" is a word and plain no is false
  std::vector<std::string> items;  // of a list; a scalar has itself
  std::string unreadable;          // if not empty: why the value cannot be known ("$BATCH is not set here")
};

// Makes a setting from a leaf of a document. `prefix` is put before its path.
Setting setting_of(const DocumentLeaf& leaf, const std::string& file);
// '-' becomes '_', leading dashes are removed, dots stay.
std::string table_key(std::string_view key);

// The value of a setting; nullopt when it has another type. Numbers may be written 5e8, 1_000, 4.0, also in quotes;
// truth values as in Python, YAML 1.1 and HfArgumentParser.
std::optional<bool> truth(const Setting& setting);
std::optional<int64_t> whole_number(const Setting& setting);
std::optional<double> real_number(const Setting& setting);
std::optional<int64_t> whole_number(std::string_view text);
std::optional<double> real_number(std::string_view text);

std::string lower(std::string_view text);
// Splits at any of `separators`; trims spaces and drops empty words.
std::vector<std::string> split_words(std::string_view text, std::string_view separators);

}  // namespace headroom::doctor
