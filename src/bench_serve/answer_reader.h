// Reads the answer to a streamed request into its record.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "bench_serve/event_reader.h"
#include "bench_serve/http_calls.h"
#include "bench_serve/request_record.h"

namespace headroom::bench {

class AnswerReader {
 public:
  // `record` must outlive the reader.
  explicit AnswerReader(RequestRecord& record);

  void head(const AnswerHead& head);
  // Takes bytes of the body that arrived at `now`. Returns false when the stream is broken: the rest is not needed.
  bool body(std::string_view bytes, double now);
  // The end of the exchange; sets the outcome.
  void end(CallEnd end, const std::string& error, double now);

 private:
  void event(std::string_view data);
  void fail(std::string message);

  RequestRecord& record_;
  EventReader events_;
  bool is_stream_ = false;
  double now_ = 0;
  std::string text_;  // for an answer that is not a stream: its start
  bool done_ = false;
  bool finished_ = false;  // some choice has a finish_reason
  bool failed_ = false;
};

}  // namespace headroom::bench
