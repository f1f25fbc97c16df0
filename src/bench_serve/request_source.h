// The requests of a load: of random lengths, or from a file. The same seed gives the same requests.
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
  // The JSON body of request `index`, from 0.
  virtual std::string body(int64_t index) const = 0;
};

// Ordinary words as the server's tokenizer splits them; without ids if the server does not have /tokenize.
struct WordTokens {
  std::vector<int64_t> ids;
  double tokens_per_word = 1.3;
};

// The ordinary words of WordTokens, as text.
std::string sample_words();
int64_t sample_word_count();

// Prompts of random words. Completions get token ids if the words' ids are known, so that lengths are exact; otherwise
// the prompts are text of about the length.
std::unique_ptr<RequestSource> random_requests(const LoadOptions& options, WordTokens words);

// Lines of JSON objects: "prompt" (text, or ids for completions) or "messages", "max_tokens" (or "output_tokens";
// --random-output-len without both), and any other fields, which are sent unchanged. Lines are used in order, and again
// from the first one. Throws Error(usage | format) with file and line.
std::unique_ptr<RequestSource> file_requests(const LoadOptions& options);

}  // namespace headroom::bench
