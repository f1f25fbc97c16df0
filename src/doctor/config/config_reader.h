// Reads whatever describes a job: configurations, scripts, notebooks, command lines, several of them together.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "doctor/config/job.h"

namespace headroom::doctor {

enum class SourceKind { yaml, json, python, notebook, command };

struct ConfigText {
  std::string name;  // for origins and errors; its suffix tells the kind where it has one
  std::string text;
};

struct ConfigInput {
  std::vector<std::filesystem::path> files;
  std::vector<ConfigText> texts;
  std::vector<std::string> arguments;  // one command line, already split into words
};

// Why a source is taken for a system's.
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
  bool referred = false;  // named by another source, not by the user
};

struct ConfigReading {
  Job job;
  std::vector<SystemEvidence> evidence;  // in the order of precedence, lowest first
  std::vector<SourceRead> sources;
  std::vector<std::string> notes;    // files named but not read, and why; values that are defaults of a script
  std::string missing_script;        // the program that a command starts, where it is not here
  std::vector<std::string> missing;  // files named for what they set, and not found; the script itself is none of them
  int64_t keys = 0;                  // keys seen: understood + irrelevant + unknown + unreadable
};

// Reads and merges. Where several sources set a field, a command line wins over launchers, those over scripts, files,
// adapters, DeepSpeed and Accelerate. A local file that a source names by a relative path (deepspeed:, --config, -c,
// the script) is read too, when it lies below the source's directory or below one of the three above that. Throws
// Error(usage) for a missing file, Error(format) with file and line for malformed text or one of no known system.
// Executes nothing.
ConfigReading read_config(const ConfigInput& input);
ConfigReading read_config_file(const std::filesystem::path& path);
ConfigReading read_config_text(const std::string& name, const std::string& text);
// Every row of a JSONL file of server commands ({"server", "options"}) is a configuration of its own.
std::vector<ConfigReading> read_config_rows(const std::string& name, const std::string& text);

// What a text is, by the name's suffix and by what it holds.
SourceKind source_kind(const std::string& name, const std::string& text);
std::string system_name(System system);  // "transformers", "LitGPT"

}  // namespace headroom::doctor
