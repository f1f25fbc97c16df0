// Reads what a person brought and sorts it: logs are scanned as they stream in, configurations are read whole.
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
  LogReport log;  // of all logs, one after the other
  bool has_log = false;
  std::optional<ConfigReading> config;
  std::string setup;          // the text of the configurations, in lower case
  std::exception_ptr unread;  // why a source was read as text alone; null where all were understood
  std::vector<ProbePoint> probe;
  std::vector<SnapshotAnalysis> snapshots;
  std::vector<std::string> sources;  // what was read, one line each
  std::vector<std::string> missing;  // what the log's command names, and is not here
};

// `standard_input` is read where an input is "-". Throws Error(usage) for a missing file, Error(format) with file and
// line for a configuration or snapshot that is malformed or of no known system. Holds at most about 10 MiB besides
// configurations and snapshots, which are read whole.
Intake read_inputs(const Request& request, std::istream& standard_input);

}  // namespace headroom::doctor
