// One connection without its socket: bytes in, bytes out, and time. Used only on the server's thread.
//
//   idle -> head -> body -> answering -> idle        one request after another, while the connection is kept
//                     \-> closing -> lingering -> closed
//
// Lingering reads and drops what a refused client still sends for a moment, so that the client can read the refusal
// before the connection is reset.
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

  // Requests without an id get one made of id_prefix and a counter.
  HttpSession(std::shared_ptr<HttpShared> shared, HttpWaker waker, const HttpHandler* handler, std::string client,
              std::string id_prefix, Time now);

  // Bytes that received() would accept now; 0 when something must be sent first.
  int64_t wanted() const;
  void received(std::string_view bytes, Time now);
  // The output, in sending order; all empty when there is none.
  std::array<std::string_view, 3> output() const;
  bool has_output() const { return sent_ < head_.size() + text_.size() + tail_.size(); }
  void sent(size_t bytes, Time now);
  // The outbox has output.
  void woken(Time now);
  // Checks time limits, and sends comments on silent streams.
  void tick(Time now);
  // The client has closed the connection, or it is broken.
  void left();
  // Answers with the refusal and closes.
  void refuse(const HttpRefusal& refusal, Time now);
  // The current answer is the last one.
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
  std::string input_;  // not parsed yet
  size_t searched_ = 0;
  std::optional<HttpRequestParser> parser_;
  Time since_;  // start of the state; in head and body, of the request's first byte

  // The current request.
  std::shared_ptr<HttpOutbox> outbox_;
  std::string request_id_;
  std::string_view allowed_origin_;  // part of shared_->limits
  bool head_only_ = false;
  bool http_1_0_ = false;
  bool keep_ = true;
  bool draining_ = false;
  bool streaming_ = false;
  bool last_part_ = false;  // the output being sent ends the answer
  int64_t requests_ = 0;

  std::string head_, text_, tail_;  // output being sent
  HeldBytes held_, last_;           // for text_
  int64_t events_in_text_ = 0;
  size_t sent_ = 0;
  Time taken_;  // when the client last read a byte, or had read all
  int64_t dropped_ = 0;
};

}  // namespace headroom
