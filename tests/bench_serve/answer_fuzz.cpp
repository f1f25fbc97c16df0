// Arbitrary bytes as the body of a streamed answer: read in pieces they give the same as when read whole. The first
// byte is the size of a piece.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "bench_serve/answer_reader.h"

namespace {

headroom::bench::RequestRecord read(std::string_view bytes, size_t piece) {
  using namespace headroom::bench;
  RequestRecord record;
  AnswerReader reader(record);
  reader.head({200, "text/event-stream", {}});
  double now = 0;
  while (!bytes.empty() && reader.body(bytes.substr(0, piece), now += 1))
    bytes.remove_prefix(std::min(piece, bytes.size()));
  reader.end(CallEnd::whole, "", now);
  return record;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  const headroom::bench::RequestRecord whole = read(bytes, bytes.size() + 1), pieces = read(bytes, data[0] + size_t{1});
  const bool same = whole.outcome == pieces.outcome && whole.pieces == pieces.pieces &&
                    whole.tokens() == pieces.tokens() && whole.input_tokens == pieces.input_tokens;
  if (!same || pieces.gaps.size() + 1 < static_cast<size_t>(pieces.pieces)) std::abort();
  return 0;
}
