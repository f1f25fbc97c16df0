// Any bytes are refused with an Error or describe tensors that do not overlap inside the file; the contents of arrays
// and tensors can be read, and nothing beyond the end is.
#include <cstdlib>
#include <cstring>

#include "base/error.h"
#include "formats/gguf_header.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace headroom;
  const ByteSource source{
      static_cast<int64_t>(size),
      [&](int64_t offset, std::span<std::byte> into) {
        if (offset < 0 || static_cast<size_t>(offset) > size || into.size() > size - static_cast<size_t>(offset))
          abort();
        std::memcpy(into.data(), data + offset, into.size());
      },
      "fuzz"};
  gguf_table_bytes(source);
  try {
    const GgufHeader header = parse_gguf_header(source);
    for (const GgufTensor& tensor : header.tensors) {
      const GgmlBlock block = ggml_block(tensor.type);
      if (tensor.offset < 0 || tensor.bytes < 0 || tensor.offset + tensor.bytes > source.size ||
          tensor.bytes != tensor.elements() / block.elements * block.bytes)
        abort();
      float values[kMostBlockElements];
      for (int64_t at = 0; at < tensor.bytes; at += block.bytes)
        decode_block(tensor.type, reinterpret_cast<const std::byte*>(data) + tensor.offset + at, values);
    }
    for (const auto& [key, array] : header.arrays) {
      try {
        if (array.type == GgufType::text)
          each_gguf_text(source, array, [](int64_t, std::string_view) {});
        else
          each_gguf_number(source, array, [](int64_t, double) {});
      } catch (const Error&) {
      }
    }
  } catch (const Error&) {
  }
  return 0;
}
