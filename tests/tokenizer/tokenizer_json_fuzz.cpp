// Arbitrary bytes as a tokenizer.json: an Error, or a tokenizer that encodes and decodes.
#include <cstdint>
#include <string>
#include <string_view>

#include "base/error.h"
#include "tokenizer/stream_encoder.h"
#include "tokenizer/tokenizer.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    const headroom::Tokenizer tokenizer = headroom::Tokenizer::from_json(text, "fuzz");
    for (const std::string_view sample :
         {"", "a", "Hello, world's  end\n\n 12<s></s>", "é\u0301 中文 🎉\u00a0▁x ab ba"}) {
      const std::vector<int32_t> ids = tokenizer.encode(sample, true);
      for (const int32_t id : ids)
        if (id < 0 || id >= tokenizer.vocab_size()) __builtin_trap();
      tokenizer.decode(ids);
      headroom::StreamEncoder encoder(tokenizer, true);
      std::vector<int32_t> streamed;
      encoder.feed(sample, streamed);
      encoder.finish(streamed);
      if (streamed != ids) __builtin_trap();
    }
  } catch (const headroom::Error&) {
  }
  return 0;
}
