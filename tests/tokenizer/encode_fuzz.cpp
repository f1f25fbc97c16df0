// Arbitrary bytes as a text, for each of the small tokenizers of golden.jsonl and golden_models.jsonl: encoding at once
// and as a stream agree, and so do decoding at once and as a stream.
#include <cstdint>
#include <fstream>
#include <string>
#include <string_view>

#include "base/error.h"
#include "formats/json.h"
#include "tokenizer/stream_decoder.h"
#include "tokenizer/stream_encoder.h"
#include "tokenizer/tokenizer.h"

namespace {

using headroom::Tokenizer;

// Start the program in the source folder, where it looks for the files.
std::vector<Tokenizer> load_tokenizers() {
  std::vector<Tokenizer> tokenizers = {Tokenizer::bytes()};
  for (const char* name : {"tests/tokenizer/golden.jsonl", "tests/tokenizer/golden_models.jsonl"}) {
    std::ifstream in(name);
    for (std::string line; std::getline(in, line);) {
      const headroom::Json entry = headroom::Json::parse(line);
      if (entry.is_object()) tokenizers.push_back(Tokenizer::from_json(entry.at("tokenizer").dump(), "golden"));
    }
  }
  return tokenizers;
}

void check(const Tokenizer& tokenizer, std::string_view text, size_t chunk) {
  const std::vector<int32_t> ids = tokenizer.encode(text, true);
  headroom::StreamEncoder encoder(tokenizer, true, 64 + static_cast<int64_t>(chunk));
  std::vector<int32_t> streamed;
  for (size_t at = 0; at < text.size(); at += chunk) encoder.feed(text.substr(at, chunk), streamed);
  encoder.finish(streamed);
  if (encoder.forced_cuts() == 0 && streamed != ids) __builtin_trap();
  headroom::StreamDecoder decoder(tokenizer);
  std::string pieces;
  for (const int32_t id : ids) pieces += decoder.push(id);
  pieces += decoder.finish();
  if (pieces != tokenizer.decode(ids)) __builtin_trap();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const std::vector<Tokenizer> tokenizers = load_tokenizers();
  if (size < 2) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data) + 2, size - 2);
  try {
    check(tokenizers[data[0] % tokenizers.size()], text, data[1] % 64U + 1);
  } catch (const headroom::Error&) {
  }
  return 0;
}
