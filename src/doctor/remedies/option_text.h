// How each system spells each technique: one line per technique and system, written in the style of the user's file.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "doctor/config/job.h"

namespace headroom::doctor {

// The style in which options are written.
enum class Style { python, yaml, json, flags };
// The style of most of the job's keys, or the system's usual one when there are none. Systems with only one style
// (axolotl, servers) always use it.
Style style_of(const Job& job);
// The style where the job sets `field`, or style_of() when it does not.
Style style_of(const Job& job, const std::string& field);
Style usual_style(System system);

struct OptionLine {
  std::string_view technique;
  System system;
  enum class Form {
    keys,    // "key=value; key=value" with Python's values, to be written in the user's style
    text,    // used as it is: flags of a server, a line of code
    missing  // the system has no option: what to do instead
  } form;
  std::string_view text;         // "{name}" is replaced by a value
  std::string_view python = {};  // used in scripts instead of `text`, if different
};

// Whether a system also takes the options of `base`, as TRL takes those of transformers.
bool builds_on(System system, System base);

// All lines, in the order of the tables.
std::vector<OptionLine> all_option_lines();

using Values = std::vector<std::pair<std::string_view, std::string>>;
struct Spelt {
  std::string text;
  bool available = true;
  // The keys and values to set, for editing the file, when the text consists of the job's own keys
  // ("train.micro_batch_size", "1") or of options ("--max-model-len", "8192"; an option without a value has an empty
  // one).
  std::vector<std::pair<std::string, std::string>> settings;
};
// The option for a technique. A system without a line for it uses that of the system it builds on, and finally that of
// a PyTorch script. A technique without any line is an InternalError.
Spelt spell(std::string_view technique, System system, Style style, const Values& values);

}  // namespace headroom::doctor
