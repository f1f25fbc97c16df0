// Answers of Anthropic's /v1/messages: blocks of text and of tool use.
#pragma once

#include <string>
#include <vector>

#include "serve/answer_writer.h"

namespace headroom {

class MessageWriter final : public AnswerWriter {
 public:
  explicit MessageWriter(AnswerHead head) : head_(std::move(head)) {}
  std::string begin(const AnswerUsage& usage) override;
  std::string piece(const AnswerPiece& piece) override;
  std::string end(const AnswerUsage& usage, const std::string& error) override;
  Json whole(const std::vector<AnswerPiece>& choices, const AnswerUsage& usage) override;

 private:
  Json message(const AnswerUsage& usage) const;
  std::string open(Json block);
  std::string delta(Json change) const;
  std::string close();
  // Notes why the answer ended, from its last piece.
  void note_end(const AnswerPiece& piece);

  const AnswerHead head_;
  int64_t blocks_ = 0;  // blocks begun
  bool open_ = false;   // the last block is not closed
  bool text_ = false;   // the last block is text
  bool called_ = false;
  Json reason_, stop_;
};

}  // namespace headroom
