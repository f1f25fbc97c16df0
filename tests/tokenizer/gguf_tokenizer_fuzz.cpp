// Arbitrary bytes as a GGUF with a tokenizer: an Error, or a tokenizer that encodes and decodes, within its booked
// size.
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "base/error.h"
#include "tokenizer/gguf_tokenizer.h"
#include "tokenizer/pipeline.h"

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
  try {
    const GgufHeader header = parse_gguf_header(source);
    if (gguf_tokenizer_bytes(source, header) < 0) abort();
    GgufTokenizer read = read_gguf_tokenizer(source, header);
    const TokenizerPipeline tokenizer(std::move(read.content));
    for (const std::string_view sample : {"a", "Hello, world's  end\n\n 12<s></s>", "é 中文 🎉 ▁x ab ba"}) {
      std::vector<int32_t> ids;
      tokenizer.encode(sample, ids);
      for (const int32_t id : ids)
        if (id < 0 || id >= tokenizer.vocab_size() || !tokenizer.token(id, false)) abort();
    }
  } catch (const Error&) {
  }
  return 0;
}
