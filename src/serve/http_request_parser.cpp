#include "serve/http_request_parser.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/beast/http/basic_parser.hpp>
#include <boost/beast/http/error.hpp>
#include <utility>

#include "base/error.h"
#include "serve/http_text.h"

namespace headroom {
namespace {

namespace http = boost::beast::http;
using ErrorCode = boost::beast::error_code;
using Text = boost::beast::string_view;

std::string_view standard_view(Text text) { return {text.data(), text.size()}; }

HttpRefusal refusal_of(const ErrorCode& error, int64_t body_bytes) {
  if (error == http::error::body_limit)
    return {413, "body_too_large", fmt::format("the request's body is longer than {} bytes", body_bytes)};
  if (error == http::error::header_limit) return {431, "headers_too_large", "the request's head is too long"};
  if (error == http::error::bad_version) return {505, "bad_version", "only HTTP/1.0 and HTTP/1.1 are supported"};
  return {400, "bad_request", fmt::format("malformed HTTP request: {}", error.message())};
}

}  // namespace

class HttpRequestParser::Parts : public http::basic_parser<true> {
 public:
  Parts(int64_t body_bytes, std::shared_ptr<ByteBudget> bodies) : body_bytes_(body_bytes), held_(std::move(bodies)) {
    body_limit(static_cast<uint64_t>(body_bytes));
    header_limit(std::numeric_limits<uint32_t>::max());  // the caller limits the bytes of the head
    eager(false);
  }

  void feed_head(std::string_view bytes) {
    size_t used = 1;
    while (used > 0 && !bytes.empty() && !is_header_done() && !refusal_) bytes.remove_prefix(used = feed(bytes));
    if (!refusal_ && !is_header_done()) refuse(400, "bad_request", "the request's head has no end");
    if (!refusal_) check_head();
    eager(true);
  }

  size_t feed(std::string_view bytes) {
    ErrorCode error;
    const size_t used = put({bytes.data(), bytes.size()}, error);
    if (error && error != http::error::need_more && !refusal_) refusal_ = refusal_of(error, body_bytes_);
    return used;
  }

  std::optional<HttpRefusal> refusal_;
  HttpRequest request_;
  bool http_1_0_ = false;
  bool wants_continue_ = false;

  HeldBytes take_held() { return std::move(held_); }

 private:
  void refuse(int status, std::string code, std::string message) {
    if (!refusal_) refusal_ = HttpRefusal{status, std::move(code), std::move(message)};
  }

  // For the parser, whose functions stop at an error.
  void refuse(ErrorCode& error, int status, std::string code, std::string message) {
    refuse(status, std::move(code), std::move(message));
    error = http::error::bad_value;
  }

  void check_head() {
    const auto hosts = std::count_if(request_.headers.begin(), request_.headers.end(),
                                     [](const auto& field) { return field.first == "host"; });
    if (hosts > 1 || (hosts == 0 && !http_1_0_)) return refuse(400, "bad_request", "a request needs one Host header");
    const std::string_view expect = request_.header("expect");
    wants_continue_ = !http_1_0_ && http_equal(expect, "100-continue");
    if (!expect.empty() && !wants_continue_ && !http_1_0_)
      return refuse(417, "expectation_failed", "Expect: only 100-continue is supported");
    if (const auto length = content_length(); length && *length > 0) {
      if (!held_.add(static_cast<int64_t>(*length))) return refuse_for_memory();
      request_.body.reserve(*length);
    }
  }

  void refuse_for_memory() {
    refuse(503, "bodies_full", "the memory for requests in progress is used up; try again soon");
  }

  void on_request_impl(http::verb, Text method, Text target, int version, ErrorCode& error) override {
    http_1_0_ = version == 10;
    request_.method = standard_view(method);
    std::optional<HttpTarget> split = http_target(standard_view(target));
    if (!split) return refuse(error, 400, "bad_request", "malformed escape in the request's target");
    request_.path = std::move(split->path);
    request_.query = std::move(split->query);
    request_.headers.reserve(kMostFields);
  }

  void on_field_impl(http::field, Text name, Text value, ErrorCode& error) override {
    if (is_header_done()) return;  // trailers are ignored
    if (request_.headers.size() == kMostFields)
      return refuse(error, 431, "headers_too_large", fmt::format("more than {} header fields", kMostFields));
    std::string key(standard_view(name));
    std::transform(key.begin(), key.end(), key.begin(),
                   [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
    // With another coding the end of the body would be ambiguous, which allows request smuggling through proxies.
    if (key == "transfer-encoding" && (http_1_0_ || !http_equal(standard_view(value), "chunked")))
      return refuse(error, 501, "transfer_encoding", "Transfer-Encoding: only chunked is supported");
    request_.headers.emplace_back(std::move(key), standard_view(value));
  }

  void on_header_impl(ErrorCode&) override {}
  void on_body_init_impl(const boost::optional<uint64_t>&, ErrorCode&) override {}
  void on_chunk_header_impl(uint64_t, Text, ErrorCode&) override {}
  void on_finish_impl(ErrorCode&) override {}
  void on_response_impl(int, Text, int, ErrorCode&) override {}

  size_t on_body_impl(Text bytes, ErrorCode&) override {
    request_.body.append(bytes.data(), bytes.size());
    return bytes.size();
  }

  size_t on_chunk_body_impl(uint64_t, Text bytes, ErrorCode& error) override {
    if (!make_room(bytes.size())) {
      refuse_for_memory();
      error = http::error::bad_value;
      return 0;
    }
    request_.body.append(bytes.data(), bytes.size());
    return bytes.size();
  }

  // Doubles the booked bytes; during the copy both strings count. Done by hand, because reserve() may allocate more
  // than asked.
  bool make_room(size_t more) {
    const int64_t need = static_cast<int64_t>(request_.body.size() + more), before = held_.bytes();
    if (need <= before) return true;
    const int64_t room = std::max(need, std::min(body_bytes_, std::max<int64_t>(2 * before, kLeastRoom)));
    if (!held_.add(room)) return false;
    std::string larger;
    larger.reserve(static_cast<size_t>(room));
    larger = request_.body;
    request_.body = std::move(larger);
    held_.shrink(before);
    return true;
  }

  static constexpr int64_t kLeastRoom = 4096;
  const int64_t body_bytes_;
  HeldBytes held_;
};

HttpRequestParser::HttpRequestParser(int64_t body_bytes, std::shared_ptr<ByteBudget> bodies)
    : parts_(std::make_unique<Parts>(body_bytes, std::move(bodies))) {}
HttpRequestParser::~HttpRequestParser() = default;

void HttpRequestParser::read_head(std::string_view bytes) { parts_->feed_head(bytes); }

size_t HttpRequestParser::read_body(std::string_view bytes) {
  if (complete() || parts_->refusal_) return 0;
  return parts_->feed(bytes);
}

bool HttpRequestParser::complete() const { return !parts_->refusal_ && parts_->is_done(); }
const std::optional<HttpRefusal>& HttpRequestParser::refusal() const { return parts_->refusal_; }
bool HttpRequestParser::keep_alive() const { return parts_->keep_alive(); }
bool HttpRequestParser::http_1_0() const { return parts_->http_1_0_; }
bool HttpRequestParser::wants_continue() const { return parts_->wants_continue_; }

std::string_view HttpRequestParser::header(std::string_view name) const { return parts_->request_.header(name); }

std::optional<int64_t> HttpRequestParser::remaining() const {
  if (parts_->chunked()) return std::nullopt;
  const auto bytes = parts_->content_length_remaining();
  return bytes ? static_cast<int64_t>(*bytes) : 0;
}

HttpRequest HttpRequestParser::take_request() {
  HR_CHECK(complete(), "a request is taken before its end");
  return std::move(parts_->request_);
}

HeldBytes HttpRequestParser::take_held() { return parts_->take_held(); }

}  // namespace headroom
