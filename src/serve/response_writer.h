// Answers of /v1/responses: items, and the events that start, extend and end them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "serve/answer_writer.h"

namespace headroom {

class ResponseWriter final : public AnswerWriter {
 public:
  // `request` must outlive it.
  ResponseWriter(AnswerHead head, const TextRequest& request) : head_(std::move(head)), request_(request) {}
  std::string begin(const AnswerUsage& usage) override;
  std::string piece(const AnswerPiece& piece) override;
  std::string end(const AnswerUsage& usage, const std::string& error) override;
  Json whole(const std::vector<AnswerPiece>& choices, const AnswerUsage& usage) override;

 private:
  enum class Open : uint8_t { nothing, message, call };

  void event(std::string_view type, Json fields);
  void open_message();
  void open_call(const ToolCall& call);
  void add_text(const std::string& text);
  void add_arguments(const std::string& arguments);
  // Closes the open item.
  void close(std::string_view status);
  void finish_message(const Json& place);
  void finish_call(const Json& place);
  Json item(std::string_view status) const;
  Json part() const;
  Json place() const;
  Json response(std::string_view status, const AnswerUsage* usage) const;

  const AnswerHead head_;
  const TextRequest& request_;
  std::string events_;  // of the current call
  int64_t sequence_ = 0;
  Json output_ = Json::array();  // closed items
  Open open_ = Open::nothing;
  std::string text_;  // text or arguments of the open item
  ToolCall call_;
  std::string status_ = "completed";
};

}  // namespace headroom
