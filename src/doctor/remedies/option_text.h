// How each system spells each technique: one line per technique and system, written in the form of the user's file.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "doctor/config/job.h"

namespace headroom::doctor {

// The form in which a person's options stand.
enum class Style { python, yaml, json, flags };
// The form of most of the job's own keys; the system's usual one when it has none. A system that is configured in one
// form only (axolotl, servers) keeps that.
Style style_of(const Job& job);
// The form of the place that sets `field`, style_of() when none does.
Style style_of(const Job& job, const std::string& field);
Style usual_style(System system);

struct OptionLine {
  std::string_view technique;
  System system;
  enum class Form {
    keys,    // "key=value; key=value" with Python's values: written in the user's style
    text,    // as it stands: flags of a server, a line of code
    missing  // the system has no option: what to do instead
  } form;
  std::string_view text;         // "{name}" stands for a value
  std::string_view python = {};  // instead of `text` in a script, where that needs other words
};

// Whether a system takes the options of `base` too: TRL those of transformers.
bool builds_on(System system, System base);

// All lines, in the order of the tables.
std::vector<OptionLine> all_option_lines();

using Values = std::vector<std::pair<std::string_view, std::string>>;
struct Spelt {
  std::string text;
  bool available = true;
  // The keys and values that text sets, where it is written in the job's own keys ("train.micro_batch_size", "1") or is
  // made of options ("--max-model-len", "8192"; an empty value: the option alone): what an editor of the file needs.
  std::vector<std::pair<std::string, std::string>> settings;
};
// The option for a technique. A system without a line of its own takes that of the system it builds on, at last the
// plain PyTorch script's. A technique without any line is an InternalError.
Spelt spell(std::string_view technique, System system, Style style, const Values& values);

}  // namespace headroom::doctor
