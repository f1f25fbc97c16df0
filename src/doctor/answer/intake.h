// Reads the inputs and sorts them: logs are scanned as they stream in, configurations are read whole.
#pragma once

#include <exception>
#include <istream>
#include <optional>
#include <string>
#include <vector>

#include "doctor/answer/request.h"
#include "doctor/config/config_reader.h"
#include "doctor/messages/log_scanner.h"
#include "doctor/remedies/probe.h"
#include "doctor/snapshot/snapshot_analysis.h"

namespace headroom::doctor {

struct Intake {
  LogReport log;  // of all logs, in the order given
  bool has_log = false;
  std::optional<ConfigReading> config;
  bool config_is_quoted = false;        // by the log, which may leave out some of it
  std::optional<ConfigReading> quoted;  // what the log quotes of a job that it does not describe whole
  std::string setup;                    // the text of the configurations, in lower case
  std::exception_ptr unread;            // why a source was read as plain text; null when all were understood
  std::vector<ProbePoint> probe;
  std::vector<SnapshotAnalysis> snapshots;
  std::vector<std::string> sources;  // what was read, one line each
  std::vector<std::string> missing;  // files that the log's command names and that were not found
};

// `standard_input` is read for the input "-". Throws Error(usage) for a missing file, and Error(format) with file and
// line for a configuration or snapshot that is malformed or of an unknown system. Holds at most about 10 MiB besides
// configurations and snapshots, which are read whole.
Intake read_inputs(const Request& request, std::istream& standard_input);

}  // namespace headroom::doctor
