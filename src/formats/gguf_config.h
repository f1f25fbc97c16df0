// Converts a GGUF's metadata to the config.json of the same model.
#pragma once

#include <cstdint>
#include <string_view>

#include "formats/gguf_file.h"
#include "formats/json.h"

namespace headroom {

// The config.json that Hugging Face has for the model; ranges are checked when it is read. If all matrices of the
// layers are Q8_0, or all Q4_0, its "quantization_config" says so, and which of these embedding and head are. Throws
// Error(format) naming file and key for an unknown architecture, experts, and missing metadata.
Json gguf_config(const GgufFile& file);

// The numbers of heads of queries and keys, by which rows are ordered; 0 if the file does not say.
int64_t gguf_heads(const GgufHeader& header, bool keys);

}  // namespace headroom
