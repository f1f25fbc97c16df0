// An answer in pieces, as the API writers get it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "serve/choice_text.h"
#include "serve/text_request.h"
#include "serve/tool_calls.h"

namespace headroom {

struct AnswerUsage {
  int64_t prompt_tokens = 0, completion_tokens = 0, cached_tokens = 0;
};

// What all events of an answer have in common.
struct AnswerHead {
  TextApi api = TextApi::completion;
  std::string id;   // in the API's form: "chatcmpl-" and the key
  std::string key;  // the end of its ids
  std::string model;
  int64_t created = 0;  // seconds since 1970
};

// A piece of a choice, or all of it.
struct AnswerPiece {
  int64_t index = 0;
  std::string text;
  std::vector<TokenText> tokens;  // the piece's tokens, if ids or log-probabilities are asked for
  std::vector<ToolCall> calls;    // after the text
  std::string finish;             // stop, length or tool_calls; empty: the choice continues
  std::string stop;               // the request's stop that ended it; empty: none
  bool begins = false;            // start of a streamed chat: names the role

  bool empty() const { return text.empty() && tokens.empty() && calls.empty() && finish.empty() && !begins; }
};

}  // namespace headroom
