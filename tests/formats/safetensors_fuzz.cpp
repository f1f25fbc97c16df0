// Any header is either refused with an Error or describes tensors that tile the data exactly.
#include <cstdlib>

#include "base/error.h"
#include "formats/safetensors_header.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace headroom;
  if (size < 2) return 0;
  const int64_t data_bytes = data[0] | data[1] << 8;
  const std::string_view text(reinterpret_cast<const char*>(data + 2), size - 2);
  try {
    JsonCharacters characters(text);
    int64_t sum = 0;
    for (const auto& [name, tensor] : parse_safetensors_header(characters, 8, data_bytes, "fuzz")) {
      sum += tensor.bytes;
      if (tensor.offset < 8 || tensor.bytes < 0 || tensor.offset + tensor.bytes > 8 + data_bytes ||
          tensor.elements() < 0)
        abort();
    }
    if (sum != data_bytes) abort();
  } catch (const Error&) {
  }
  return 0;
}
