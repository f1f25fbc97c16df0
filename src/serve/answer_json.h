// The JSON of answers, whole and streamed, as OpenAI's clients read it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "formats/json.h"
#include "serve/choice_text.h"
#include "serve/text_request.h"
#include "serve/tool_calls.h"

namespace headroom {

struct AnswerUsage {
  int64_t prompt_tokens = 0, completion_tokens = 0, cached_tokens = 0;
  Json json() const;
};

// What all events of an answer have in common.
struct AnswerHead {
  TextApi api = TextApi::completion;
  std::string id, model;
  int64_t created = 0;  // seconds since 1970
};

// One piece of a choice, or all of it.
struct AnswerPiece {
  int64_t index = 0;
  std::string text;
  std::vector<TokenText>
      tokens;  // those that the piece has beside its text, where ids or log-probabilities are asked for
  std::vector<ToolCall> calls;
  std::string finish;   // empty: it goes on
  bool begins = false;  // of a streamed chat: names the role
};

// {"id", "object", "created", "model", "choices"} of a whole answer.
Json whole_answer(const AnswerHead& head, const TextRequest& request, const std::vector<AnswerPiece>& choices);
// The same of one streamed piece.
Json streamed_piece(const AnswerHead& head, const TextRequest& request, const AnswerPiece& piece, int64_t text_offset);
// The last event where usage is asked for.
Json streamed_usage(const AnswerHead& head, const AnswerUsage& usage);

// "data: ...\n\n".
std::string event_text(const Json& json);

// Characters, not bytes, of UTF-8.
int64_t character_count(std::string_view utf8);

}  // namespace headroom
