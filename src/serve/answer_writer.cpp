#include "serve/answer_writer.h"

#include "serve/answer_json.h"
#include "serve/json_text.h"
#include "serve/message_writer.h"
#include "serve/response_writer.h"

namespace headroom {

std::unique_ptr<AnswerWriter> make_answer_writer(const AnswerHead& head, const TextRequest& request) {
  switch (head.api) {
    case TextApi::response:
      return std::make_unique<ResponseWriter>(head, request);
    case TextApi::message:
      return std::make_unique<MessageWriter>(head);
    default:
      return std::make_unique<ChoicesWriter>(head, request);
  }
}

std::string event_text(const Json& json) { return "data: " + json_text(json) + "\n\n"; }

std::string typed_event_text(const Json& json) {
  return "event: " + json.at("type").get_ref<const std::string&>() + "\n" + event_text(json);
}

}  // namespace headroom
