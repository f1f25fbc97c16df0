// The JSON of completions and chats, whole and streamed, in OpenAI's format.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "serve/answer_writer.h"

namespace headroom {

// {"id", "object", "created", "model", "choices"} for a whole answer.
Json whole_answer(const AnswerHead& head, const TextRequest& request, const std::vector<AnswerPiece>& choices);
// The same for a streamed piece.
Json streamed_piece(const AnswerHead& head, const TextRequest& request, const AnswerPiece& piece, int64_t text_offset);
// The last event if usage is asked for.
Json streamed_usage(const AnswerHead& head, const AnswerUsage& usage);

class ChoicesWriter final : public AnswerWriter {
 public:
  ChoicesWriter(AnswerHead head, const TextRequest& request) : head_(std::move(head)), request_(request) {}
  std::string begin(const AnswerUsage&) override { return {}; }
  std::string piece(const AnswerPiece& piece) override;
  std::string end(const AnswerUsage& usage, const std::string& error) override;
  Json whole(const std::vector<AnswerPiece>& choices, const AnswerUsage& usage) override;

 private:
  const AnswerHead head_;
  const TextRequest& request_;
  std::map<int64_t, int64_t> characters_;  // by choice: characters of the tokens sent so far
};

// Counts UTF-8 characters, not bytes.
int64_t character_count(std::string_view utf8);

}  // namespace headroom
