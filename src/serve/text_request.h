// What a client asks of /v1/completions and /v1/chat/completions, checked but not yet encoded.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "formats/ordered_json.h"
#include "generate/sampler.h"
#include "grammar/grammar.h"

namespace headroom {

enum class TextApi : uint8_t { completion, chat };

// A text, or its ids where `is_ids`.
struct PromptInput {
  std::string text;
  std::vector<int32_t> ids;
  bool is_ids = false;
};

// Whether the answer may, or must, be a call of one of the tools.
struct ToolUse {
  enum class Mode : uint8_t { none, automatic, required, named };
  Mode mode = Mode::none;
  std::string name;  // of Mode::named

  // The answer has to be a call.
  bool forced() const { return mode == Mode::required || mode == Mode::named; }
};

struct TextRequest {
  TextApi api = TextApi::completion;
  std::string model;                 // empty: not named
  std::vector<PromptInput> prompts;  // of a completion
  OrderedJson messages, tools;       // of a chat; null: no tools
  ToolUse tool_use;
  int64_t n = 1;
  std::optional<int64_t> max_tokens;
  SamplingOptions sampling;  // less its seed
  std::optional<uint64_t> seed;
  std::vector<std::string> stops;
  std::optional<GrammarSource> grammar;
  bool stream = false, include_usage = false, echo = false, return_ids = false;
  int64_t best = -1;           // log-probabilities of the token and of so many others; -1: none
  bool keeps_special = false;  // special tokens stay in the text
  bool ignores_eos = false;    // an end of text does not end the answer; without meaning beside a grammar

  int64_t choices() const { return n * (api == TextApi::chat ? 1 : static_cast<int64_t>(prompts.size())); }
};

// Reads a parsed body. `vocab`: of the model's logits. Throws ApiError(400).
TextRequest read_text_request(TextApi api, const OrderedJson& body, int64_t vocab);

}  // namespace headroom
