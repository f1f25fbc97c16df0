// An answer as the writers of the APIs get it: in pieces.
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
  std::string id;   // as its API has them: "chatcmpl-" and the key
  std::string key;  // what its ids end with
  std::string model;
  int64_t created = 0;  // seconds since 1970
};

// One piece of a choice, or all of it.
struct AnswerPiece {
  int64_t index = 0;
  std::string text;
  std::vector<TokenText>
      tokens;  // those that the piece has beside its text, where ids or log-probabilities are asked for
  std::vector<ToolCall> calls;  // behind the text
  std::string finish;           // stop, length or tool_calls; empty: it goes on
  std::string stop;             // which of the request's stops ended it; empty: none did
  bool begins = false;          // of a streamed chat: names the role

  bool empty() const { return text.empty() && tokens.empty() && calls.empty() && finish.empty() && !begins; }
};

}  // namespace headroom
