// Reads descriptions of a job: configurations, scripts, notebooks, command lines, or several of them together.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "doctor/config/job.h"

namespace headroom::doctor {

enum class SourceKind { yaml, json, python, notebook, command };

struct ConfigText {
  std::string name;  // for origins and errors; its suffix tells the kind if it has one
  std::string text;
};

struct ConfigInput {
  std::vector<std::filesystem::path> files;
  std::vector<ConfigText> texts;
  std::vector<std::string> arguments;  // one command line, already split into words
};

// Why a source is attributed to a system.
struct SystemEvidence {
  std::string source;
  System system = System::unknown;
  std::string dialect;   // "TRL", "Accelerate", "Slurm"
  std::string evidence;  // "key zero_optimization", "command `vllm serve`"
};

struct SourceRead {
  std::string name;
  SourceKind kind = SourceKind::yaml;
  std::string text;
  bool referred = false;  // named by another source, not given by the user
};

struct ConfigReading {
  Job job;
  std::vector<SystemEvidence> evidence;  // in the order of precedence, lowest first
  std::vector<SourceRead> sources;
  std::vector<std::string> notes;    // files named but not read, and why; values that are a script's defaults
  std::string missing_script;        // the program that a command starts, if it was not found
  std::vector<std::string> missing;  // files with settings that were named and not found, other than the script
  int64_t keys = 0;                  // keys seen: understood + irrelevant + unknown + unreadable
};

// Reads and merges the sources. Where several set a field, a command line has precedence over launchers, then scripts,
// files, adapters, and DeepSpeed's and Accelerate's files. A local file that a source names by a relative path
// (deepspeed:, --config, -c, the script) is read too, if it is inside the source's directory or one of the three above
// it. Throws Error(usage) for a missing file, and Error(format) with file and line for a text that is malformed or of
// an unknown system. Executes nothing.
ConfigReading read_config(const ConfigInput& input);
ConfigReading read_config_file(const std::filesystem::path& path);
ConfigReading read_config_text(const std::string& name, const std::string& text);
// Each row of a JSONL file of server commands ({"server", "options"}) is a separate configuration.
std::vector<ConfigReading> read_config_rows(const std::string& name, const std::string& text);

// The name of a passage that a text quotes, as sources and origins have it: "the YAML in the text (line 12)".
std::string passage_name(SourceKind kind, int64_t line);
// The kind that the name alone tells, by its suffix or as that of a passage.
std::optional<SourceKind> kind_of_name(const std::string& name);
// The kind of a text, by its name and its content.
SourceKind source_kind(const std::string& name, const std::string& text);
std::string system_name(System system);  // "transformers", "LitGPT"

}  // namespace headroom::doctor
