// The JSON header of a safetensors file, parsed and checked: what lies behind it is known by its size alone.
#pragma once

#include <cstdint>
#include <string>

#include "formats/json_characters.h"
#include "formats/safetensors.h"

namespace headroom {

// Parses the header of a file whose data begins at `data_offset` and has `data_bytes`; `source` names it in errors.
// Offsets in the result count from the file's beginning; "__metadata__" is checked and left out. Throws Error(format)
// as SafetensorsFile::open. What it holds at once, the result included, is at most kHeaderFactor times the text.
StoredTensors parse_safetensors_header(JsonCharacters& text, int64_t data_offset, int64_t data_bytes,
                                       const std::string& source);

// A tensor takes at least 50 bytes of text and some 150 of memory, with 16 dimensions 80 and 270; a metadata entry 6
// and
// 24. Of a string, or of spaces, the parser holds the text and its meaning, which grow by doubling: five times its
// bytes while the second grows, six with a tensor's name from it.
inline constexpr int64_t kHeaderFactor = 6;

}  // namespace headroom
