// The job of a post: the command that its log prints, and the configurations that it quotes, read as files and commands
// given by option are.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "doctor/config/config_reader.h"
#include "doctor/messages/log_scanner.h"

namespace headroom::doctor {

struct PostedConfig {
  std::optional<ConfigReading> config;  // absent where nothing is quoted, or where quotations contradict each other
  bool whole = false;                   // model and settings are known; otherwise what it leaves open has no defaults
  bool command = false;                 // the command of the log is part of it
  bool quoted = false;                  // and more than the command
  std::vector<std::string> missing;     // files that the command names and that are neither quoted nor found
};

PostedConfig posted_config(const LogReport& log);

// "the YAML in the text (line 4): micro_batch_size 2, sequence_len 4096", for each quotation.
std::vector<std::string> settings_by_quotation(const ConfigReading& config);

}  // namespace headroom::doctor
