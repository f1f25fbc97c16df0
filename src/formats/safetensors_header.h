// The JSON header of a safetensors file, parsed and checked as text: knows no file but its name.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "formats/safetensors.h"

namespace headroom {

struct SafetensorsHeader {
  StoredTensors tensors;
  std::map<std::string, std::string> metadata;
};

// Parses `text` for a file whose data begins at `data_offset` and has `data_bytes`; `source` names it in errors.
// Offsets in the result count from the file's beginning. Throws Error(format) as SafetensorsFile::open. Memory is
// proportional to the text.
SafetensorsHeader parse_safetensors_header(std::string_view text, int64_t data_offset, int64_t data_bytes,
                                           const std::string& source);

}  // namespace headroom
