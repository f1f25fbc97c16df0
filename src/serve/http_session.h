// One connection without its socket: bytes in, bytes out, and time. All of it on the server's thread.
//
//   idle -> head -> body -> answering -> idle        a request after the other, while the connection is kept
//                     \-> closing -> lingering -> closed
//
// Lingering takes and drops what a refused client still sends for a moment, so that it reads the refusal instead of a
// reset connection.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "serve/http_outbox.h"
#include "serve/http_request_parser.h"
#include "serve/http_text.h"

namespace headroom {

class HttpSession {
 public:
  using Time = std::chrono::steady_clock::time_point;

  // id_prefix and a counter make the request ids of requests without one.
  HttpSession(std::shared_ptr<HttpShared> shared, HttpWaker waker, const HttpHandler* handler, std::string client,
              std::string id_prefix, Time now);

  // Bytes that received() would take now; 0 where none are read until something has been sent.
  int64_t wanted() const;
  void received(std::string_view bytes, Time now);
  // To be sent, in this order; all empty where there is nothing.
  std::array<std::string_view, 3> output() const;
  bool has_output() const { return sent_ < head_.size() + text_.size() + tail_.size(); }
  void sent(size_t bytes, Time now);
  // The outbox has something.
  void woken(Time now);
  // Time limits and comments of silent streams.
  void tick(Time now);
  // The client has closed, or its connection is broken.
  void left();
  // Nobody is served here: an answer, and the end.
  void refuse(const HttpRefusal& refusal, Time now);
  // After the answer under way there is no other.
  void drain();
  void close();

  bool closed() const { return state_ == State::closed; }
  bool lingering() const { return state_ == State::lingering; }

 private:
  enum class State { idle, head, body, answering, closing, lingering, closed };

  void append(std::string_view bytes);
  void advance(Time now);
  bool begin_request(Time now);
  bool read_head(Time now);
  bool read_body(Time now);
  bool refuse_head_early(Time now);
  void begin_answer(Time now);
  void answer_preflight();
  bool is_preflight(const HttpRequest& request) const;
  void answer_with(HttpOutbox::Part part);
  void frame_events(std::string text, bool ends);
  void look_into_outbox(Time now);
  void answer_is_sent(Time now);
  void all_is_sent(Time now);
  std::string answer_head(const HttpOutbox::Part& part, bool keep) const;

  const std::shared_ptr<HttpShared> shared_;
  const HttpWaker waker_;
  const HttpHandler* handler_;
  const std::string client_;
  const std::string id_prefix_;

  State state_ = State::idle;
  std::string input_;  // not yet parsed
  size_t searched_ = 0;
  std::optional<HttpRequestParser> parser_;
  Time since_;  // the state's beginning; of head and body the request's first byte

  // The request under way.
  std::shared_ptr<HttpOutbox> outbox_;
  std::string request_id_;
  std::string_view allowed_origin_;  // of shared_->limits
  bool head_only_ = false;
  bool http_1_0_ = false;
  bool keep_ = true;
  bool draining_ = false;
  bool streaming_ = false;
  bool last_part_ = false;  // what is being sent ends the answer
  int64_t requests_ = 0;

  std::string head_, text_, tail_;  // being sent
  HeldBytes held_, last_;           // for text_
  int64_t events_in_text_ = 0;
  size_t sent_ = 0;
  Time taken_;  // when the client last took a byte, or had taken all
  int64_t dropped_ = 0;
};

}  // namespace headroom
