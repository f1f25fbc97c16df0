// Reads YAML and JSON: finds which system the file belongs to, and its settings.
#pragma once

#include <string>

#include "doctor/config/part.h"
#include "formats/document.h"

namespace headroom::doctor {

// Throws Error(format) with file and line when the text is malformed, is not a mapping, or is of an unknown system.
Parts read_document(const std::string& name, const std::string& text, bool json);
// Reads a row of a table of server commands: {"server": "vllm", "options": {...}}. Throws the same errors.
Parts read_server_row(const std::string& name, const DocumentNode& row);

}  // namespace headroom::doctor
