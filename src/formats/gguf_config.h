// What a GGUF's metadata says, as the config.json of the same model.
#pragma once

#include <cstdint>
#include <string_view>

#include "formats/gguf_file.h"
#include "formats/json.h"

namespace headroom {

// The config.json that Hugging Face has for the model; ranges are checked where it is read. Where all matrices of the
// layers are Q8_0, or all Q4_0, its "quantization_config" says so. Throws Error(format) naming file and key for an
// architecture that is not known, experts, and metadata that is missing.
Json gguf_config(const GgufFile& file);

// Heads of queries (keys), by which rows are ordered; 0 for a file that does not say.
int64_t gguf_heads(const GgufHeader& header, bool keys);

}  // namespace headroom
