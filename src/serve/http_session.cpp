#include "serve/http_session.h"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <utility>

namespace headroom {
namespace {

constexpr int64_t kDropBytes = int64_t{8} << 20;  // of one refused client: a long body in transit
constexpr double kDropSeconds = 2;
constexpr int64_t kBodyPiece = 4096;       // read at once of a chunked body; what follows the body stays in memory
constexpr int64_t kPipelinedBytes = 1024;  // of the next request, kept during an answer
constexpr int64_t kAnyPiece = 64 << 10;

bool is_over(HttpSession::Time since, double seconds, HttpSession::Time now) {
  return std::chrono::duration<double>(now - since).count() > seconds;
}

}  // namespace

HttpSession::HttpSession(std::shared_ptr<HttpShared> shared, HttpWaker waker, const HttpHandler* handler,
                         std::string client, std::string id_prefix, Time now)
    : shared_(std::move(shared)),
      waker_(std::move(waker)),
      handler_(handler),
      client_(std::move(client)),
      id_prefix_(std::move(id_prefix)),
      since_(now),
      allowed_origin_(shared_->limits.origins.answer_to({})),
      taken_(now) {}

int64_t HttpSession::wanted() const {
  const auto room = [&](int64_t most) { return std::max<int64_t>(0, most - static_cast<int64_t>(input_.size())); };
  switch (state_) {
    case State::idle:
    case State::head:
      return room(shared_->limits.header_bytes);
    case State::body: {
      const auto remaining = parser_->remaining();
      return remaining ? std::min(*remaining, kAnyPiece) : kBodyPiece;
    }
    case State::answering:
      return room(kPipelinedBytes);
    case State::closing:
    case State::lingering:
      return kAnyPiece;
    case State::closed:
      return 0;
  }
  return 0;
}

void HttpSession::received(std::string_view bytes, Time now) {
  if (state_ == State::closed) return;
  if (state_ == State::closing || state_ == State::lingering) {
    dropped_ += static_cast<int64_t>(bytes.size());
    if (dropped_ > kDropBytes) state_ = State::closed;
    return;
  }
  if (state_ == State::body && input_.empty()) {
    bytes.remove_prefix(parser_->read_body(bytes));  // without a copy
    input_ = bytes;
  } else {
    append(bytes);
  }
  advance(now);
}

// Grows by hand: a string that grows by itself may take twice the limit.
void HttpSession::append(std::string_view bytes) {
  const size_t need = input_.size() + bytes.size();
  if (need > input_.capacity()) {
    std::string larger;
    larger.reserve(std::max(need, std::min(2 * input_.capacity(), static_cast<size_t>(shared_->limits.header_bytes))));
    larger = input_;
    input_ = std::move(larger);
  }
  input_ += bytes;
}

void HttpSession::advance(Time now) {
  bool more = true;
  while (more) switch (state_) {
      case State::idle:
        more = begin_request(now);
        break;
      case State::head:
        more = read_head(now);
        break;
      case State::body:
        more = read_body(now);
        break;
      default:
        more = false;
    }
}

bool HttpSession::begin_request(Time now) {
  const size_t first = input_.find_first_not_of("\r\n");
  input_.erase(0, std::min(first, input_.size()));
  if (input_.empty()) {
    std::string().swap(input_);
    return false;
  }
  if (input_.front() == 0x16) {  // a TLS handshake: its client could not read an answer in plain text
    state_ = State::closed;
    return false;
  }
  state_ = State::head;
  since_ = now;
  searched_ = 0;
  allowed_origin_ = shared_->limits.origins.answer_to({});
  return true;
}

bool HttpSession::refuse_head_early(Time now) {
  if (const size_t line = input_.find('\n'); line != std::string::npos) {
    const std::string_view first = std::string_view(input_).substr(0, line);
    const bool ends_well = first.ends_with(" HTTP/1.1\r") || first.ends_with(" HTTP/1.0\r");
    if (!ends_well && first.find(" HTTP/") != std::string_view::npos && first.ends_with('\r')) {
      refuse({505, "bad_version", "only HTTP/1.0 and HTTP/1.1 are supported"}, now);
      return true;
    }
    if (!ends_well) {
      refuse({400, "bad_request", "malformed HTTP request: the first line is not an HTTP/1.1 request line"}, now);
      return true;
    }
  }
  if (static_cast<int64_t>(input_.size()) < shared_->limits.header_bytes) return false;
  refuse({431, "headers_too_large",
          fmt::format("the request's head is longer than {} bytes", shared_->limits.header_bytes)},
         now);
  return true;
}

bool HttpSession::read_head(Time now) {
  const size_t end = input_.find("\r\n\r\n", searched_ < 3 ? 0 : searched_ - 3);
  searched_ = input_.size();
  if (end == std::string::npos) {
    refuse_head_early(now);
    return false;
  }
  const int64_t most = shared_->limits.body_bytes;
  parser_.emplace(most, shared_->bodies);
  parser_->read_head(std::string_view(input_).substr(0, end + 4));
  allowed_origin_ = shared_->limits.origins.answer_to(parser_->header("origin"));
  if (const auto& refusal = parser_->refusal()) {
    refuse(*refusal, now);
    return false;
  }
  input_ = input_.substr(end + 4);
  http_1_0_ = parser_->http_1_0();
  keep_ = parser_->keep_alive() && !draining_;
  state_ = State::body;
  if (parser_->wants_continue() && !parser_->complete() && input_.empty()) {
    head_ = "HTTP/1.1 100 Continue\r\n\r\n";
    taken_ = now;
  }
  return true;
}

bool HttpSession::read_body(Time now) {
  if (!parser_->complete() && !parser_->refusal() && !input_.empty()) {
    const size_t used = parser_->read_body(input_);
    if (used > 0) input_ = input_.substr(used);
  }
  if (const auto& refusal = parser_->refusal()) {
    refuse(*refusal, now);
  } else if (parser_->complete()) {
    begin_answer(now);
  } else if (static_cast<int64_t>(input_.size()) > kBodyPiece) {
    refuse({400, "bad_request", "malformed HTTP request: the line of a chunk has no end"}, now);
  }
  return false;
}

void HttpSession::begin_answer(Time now) {
  HttpRequest request = parser_->take_request();
  HeldBytes body = parser_->take_held();
  parser_.reset();
  request.client = client_;
  const std::string_view id = request.header("x-request-id");
  ++requests_;
  request.request_id = http_request_id_is_plain(id) ? std::string(id) : fmt::format("{}-{}", id_prefix_, requests_);
  request_id_ = request.request_id;
  head_only_ = request.method == "HEAD";
  if (head_only_) request.method = "GET";
  state_ = State::answering;
  since_ = taken_ = now;
  streaming_ = last_part_ = false;
  outbox_ = std::make_shared<HttpOutbox>(shared_, waker_);
  if (is_preflight(request)) {
    if (!allowed_origin_.empty()) {
      answer_preflight();
      return look_into_outbox(now);
    }
    outbox_.reset();
    return refuse({403, "origin_not_allowed",
                   "pages of this origin may not call this server; --allowed-origins lists those that may"},
                  now);
  }
  HeldBytes seat(shared_->exchanges);
  if (!seat.add(1)) {
    outbox_.reset();
    return refuse({503, "exchanges_full", "too many requests are in progress; try again soon"}, now);
  }
  const std::shared_ptr<HttpOutbox> outbox = outbox_;
  try {
    (*handler_)(make_http_exchange(std::move(request), std::move(body), std::move(seat), outbox));
  } catch (const std::exception&) {
    outbox->abandon();
  }
  look_into_outbox(now);
}

// A browser's preflight before a page's call. Not answered without a list of origins.
bool HttpSession::is_preflight(const HttpRequest& request) const {
  const HttpOrigins& origins = shared_->limits.origins;
  return request.method == "OPTIONS" && (origins.any || (!origins.none() && !request.header("origin").empty()));
}

void HttpSession::answer_preflight() {
  outbox_->send(204, "", "",
                {{"Access-Control-Allow-Methods", "GET, HEAD, POST, OPTIONS"},
                 {"Access-Control-Allow-Headers", "Authorization, Content-Type, X-Request-Id, *"},
                 {"Access-Control-Max-Age", "600"}});
}

std::string HttpSession::answer_head(const HttpOutbox::Part& part, bool keep) const {
  HttpAnswerHead head;
  head.status = part.status;
  head.content_type = part.content_type;
  if (part.whole && part.status != 204) head.content_length = static_cast<int64_t>(part.text.size());
  head.chunked = !part.whole && !http_1_0_;
  head.keep_alive = keep;
  head.http_1_0 = http_1_0_;
  head.allowed_origin = allowed_origin_;
  head.varies_by_origin = !shared_->limits.origins.any && !shared_->limits.origins.none();
  head.request_id = request_id_;
  head.headers = &part.headers;
  return http_head(head);
}

void HttpSession::frame_events(std::string text, bool ends) {
  if (head_only_) text.clear();
  if (http_1_0_ || head_only_) {
    text_ = std::move(text);
    return;
  }
  if (!text.empty()) {
    head_ += fmt::format("{:x}\r\n", text.size());
    tail_ = "\r\n";
  }
  if (ends) tail_ += "0\r\n\r\n";
  text_ = std::move(text);
}

void HttpSession::answer_with(HttpOutbox::Part part) {
  if (part.begins) {
    if (!part.whole && http_1_0_) keep_ = false;
    head_ = answer_head(part, keep_);
    streaming_ = !part.whole;
  }
  held_ = std::move(part.held);
  last_ = std::move(part.last);
  last_part_ = part.ends;
  if (part.whole) {
    text_ = head_only_ || part.status == 204 ? std::string() : std::move(part.text);
  } else {
    events_in_text_ = static_cast<int64_t>(part.text.size());
    frame_events(std::move(part.text), part.ends);
  }
}

void HttpSession::look_into_outbox(Time now) {
  if (state_ != State::answering || has_output()) return;
  HttpOutbox::Part part = outbox_->take();
  if (part.empty()) return;
  if (part.cut) return left();
  taken_ = now;
  answer_with(std::move(part));
  if (!has_output()) all_is_sent(now);
}

void HttpSession::woken(Time now) {
  if (state_ == State::answering && outbox_->is_cut()) return left();  // whatever its client has not read yet
  look_into_outbox(now);
}

std::array<std::string_view, 3> HttpSession::output() const {
  std::array<std::string_view, 3> parts = {head_, text_, tail_};
  size_t skip = sent_;
  for (std::string_view& part : parts) {
    const size_t some = std::min(skip, part.size());
    part.remove_prefix(some);
    skip -= some;
  }
  return parts;
}

void HttpSession::sent(size_t bytes, Time now) {
  sent_ += bytes;
  if (bytes > 0) taken_ = now;
  if (!has_output()) all_is_sent(now);
}

void HttpSession::all_is_sent(Time now) {
  sent_ = 0;
  for (std::string* part : {&head_, &text_, &tail_}) std::string().swap(*part);
  held_ = HeldBytes();
  last_ = HeldBytes();
  if (outbox_ && events_in_text_ > 0) outbox_->sent(std::exchange(events_in_text_, 0));
  if (state_ == State::closing) {
    state_ = State::lingering;
    since_ = now;
  } else if (state_ == State::answering && last_part_) {
    answer_is_sent(now);
  } else {
    look_into_outbox(now);
  }
}

void HttpSession::answer_is_sent(Time now) {
  outbox_.reset();
  since_ = now;
  if (!keep_ || draining_) {
    state_ = input_.empty() ? State::closed : State::lingering;
    return;
  }
  state_ = State::idle;
  advance(now);
}

void HttpSession::refuse(const HttpRefusal& refusal, Time now) {
  HttpHeaders headers;
  if (refusal.status == 503) headers.emplace_back("Retry-After", "1");
  HttpOutbox::Part part;
  part.whole = true;
  part.status = refusal.status;
  part.content_type = "application/json";
  part.headers = std::move(headers);
  part.text = http_error_body(refusal.status, refusal.message, refusal.code);
  if (state_ != State::answering) request_id_ = fmt::format("{}-{}", id_prefix_, ++requests_);
  keep_ = false;
  head_ += answer_head(part, false);  // after a "100 Continue" that is being sent
  text_ = std::move(part.text);
  parser_.reset();
  std::string().swap(input_);
  state_ = State::closing;
  taken_ = since_ = now;
}

void HttpSession::tick(Time now) {
  const HttpLimits& limits = shared_->limits;
  const bool stuck = has_output() && is_over(taken_, limits.write_seconds, now);
  switch (state_) {
    case State::idle:
      if (is_over(since_, limits.idle_seconds, now)) close();
      break;
    case State::head:
    case State::body:
      if (is_over(since_, limits.request_seconds, now)) close();
      break;
    case State::answering:
      if (stuck) return left();
      if (streaming_ && !has_output() && is_over(taken_, limits.ping_seconds, now)) {
        frame_events(": ping\n\n", false);
        taken_ = now;
      }
      break;
    case State::closing:
      if (stuck) close();
      break;
    case State::lingering:
      if (is_over(since_, kDropSeconds, now)) close();
      break;
    case State::closed:
      break;
  }
}

void HttpSession::left() {
  close();
  if (const std::shared_ptr<HttpOutbox> outbox = std::exchange(outbox_, nullptr)) outbox->gone();
}

void HttpSession::close() { state_ = State::closed; }

void HttpSession::drain() {
  draining_ = true;
  if (state_ == State::answering) {
    keep_ = false;
  } else if (state_ != State::closing) {
    close();
  }
}

}  // namespace headroom
