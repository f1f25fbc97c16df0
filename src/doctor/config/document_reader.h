// YAML and JSON: which system's file it is, and its settings.
#pragma once

#include <string>

#include "doctor/config/part.h"
#include "formats/document.h"

namespace headroom::doctor {

// Throws Error(format) with file and line when the text is malformed, holds no mapping, or is of no known system.
Parts read_document(const std::string& name, const std::string& text, bool json);
// A row of a table of server commands: {"server": "vllm", "options": {...}}. Throws likewise.
Parts read_server_row(const std::string& name, const DocumentNode& row);

}  // namespace headroom::doctor
