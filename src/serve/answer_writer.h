// Writes an answer in an API's format, whole or as the events of a stream.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "formats/json.h"
#include "serve/answer_piece.h"

namespace headroom {

// Used by one thread for one answer: either begin(), piece() ..., end(), each of which returns the text of some events,
// or whole().
class AnswerWriter {
 public:
  virtual ~AnswerWriter() = default;
  virtual std::string begin(const AnswerUsage& usage) = 0;
  virtual std::string piece(const AnswerPiece& piece) = 0;
  // `error`: the failure during the stream, else empty.
  virtual std::string end(const AnswerUsage& usage, const std::string& error) = 0;
  virtual Json whole(const std::vector<AnswerPiece>& choices, const AnswerUsage& usage) = 0;
};

// The writer for the head's API. `request` must outlive it.
std::unique_ptr<AnswerWriter> make_answer_writer(const AnswerHead& head, const TextRequest& request);

// "data: ...\n\n".
std::string event_text(const Json& json);
// "event: TYPE\ndata: ...\n\n" of {"type": TYPE, ...}.
std::string typed_event_text(const Json& json);

}  // namespace headroom
