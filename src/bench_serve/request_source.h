// The requests of a load: bodies of random lengths, or of a file. The same seed gives the same requests.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "bench_serve/load_options.h"

namespace headroom::bench {

class RequestSource {
 public:
  virtual ~RequestSource() = default;
  // The JSON body of request `index`, 0 and up.
  virtual std::string body(int64_t index) const = 0;
};

// What the server's tokenizer makes of ordinary words; without ids where it has no /tokenize.
struct WordTokens {
  std::vector<int64_t> ids;
  double tokens_per_word = 1.3;
};

// The text of ordinary words that WordTokens are counted of.
std::string sample_words();
int64_t sample_word_count();

// Prompts of random words: as token ids for completions where the ids of words are known, so that lengths are exact;
// else as text whose length is about that.
std::unique_ptr<RequestSource> random_requests(const LoadOptions& options, WordTokens words);

// Lines of JSON objects: "prompt" (text, or ids for completions) or "messages", "max_tokens" (or "output_tokens";
// without both --random-output-len), and whatever else the request should have, which is sent as it is. Lines come in
// their order, and again from the first. Throws Error(usage | format) naming file and line.
std::unique_ptr<RequestSource> file_requests(const LoadOptions& options);

}  // namespace headroom::bench
