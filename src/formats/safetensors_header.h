// Parses and checks the JSON header of a safetensors file; of the data behind it only the size is known.
#pragma once

#include <cstdint>
#include <string>

#include "formats/json_characters.h"
#include "formats/safetensors.h"

namespace headroom {

// Parses the header of a file whose data begins at `data_offset` and has `data_bytes` bytes; `source` names it in
// errors. Offsets in the result count from the start of the file; "__metadata__" is checked and dropped. Throws
// Error(format) like SafetensorsFile::open. Holds at most kHeaderFactor times the text's bytes at once, the result
// included.
StoredTensors parse_safetensors_header(JsonCharacters& text, int64_t data_offset, int64_t data_bytes,
                                       const std::string& source);

// A tensor takes at least 50 bytes of text and about 150 of memory; with 16 dimensions 80 and 270; a metadata entry 6
// and 24. For a string, or spaces, the parser holds the raw text and the decoded one, which both grow by doubling: five
// times the bytes while the second grows, six with a tensor's name made from it.
inline constexpr int64_t kHeaderFactor = 6;

}  // namespace headroom
