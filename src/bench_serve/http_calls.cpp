#include "bench_serve/http_calls.h"

#include <array>
#include <boost/asio/connect.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/buffer_body.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/read.hpp>
#include <charconv>
#include <chrono>
#include <optional>

#include "base/error.h"

namespace headroom::bench {
namespace {

namespace asio = boost::asio;
namespace http = boost::beast::http;
using Tcp = asio::ip::tcp;
using SocketError = boost::system::error_code;
using Clock = std::chrono::steady_clock;

Clock::duration span_of(double seconds) {
  return std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
}

std::optional<double> retry_after_of(boost::string_view text) {
  if (text.empty()) return std::nullopt;
  double seconds = 1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seconds);
  return error == std::errc() && seconds >= 0 ? seconds : 1;
}

// A request and its answer; its pending operations keep it alive.
class Call : public std::enable_shared_from_this<Call> {
 public:
  Call(asio::io_context& io, std::string request, CallHooks hooks)
      : socket_(io), timer_(io), request_(std::move(request)), hooks_(std::move(hooks)) {
    parser_.body_limit(boost::none);
    parser_.header_limit(64 << 10);
  }

  void start(const Tcp::resolver::results_type& places, double seconds) {
    timer_.expires_after(span_of(seconds));
    timer_.async_wait([self = shared_from_this(), seconds](SocketError error) {
      if (!error) self->end(CallEnd::timed_out, fmt::format("not answered within {:g} s", seconds));
    });
    asio::async_connect(socket_, places, [self = shared_from_this()](SocketError error, const Tcp::endpoint&) {
      if (self->ended_) return;
      if (error) return self->end(CallEnd::unreachable, error.message());
      self->write();
    });
  }

  void cancel() { end(CallEnd::cancelled, "cancelled"); }

 private:
  // Also reads what the server sends before it has read the whole request.
  void write() {
    SocketError ignored;
    socket_.set_option(Tcp::no_delay(true), ignored);
    asio::async_write(socket_, asio::buffer(request_), [self = shared_from_this()](SocketError, size_t) {});
    read();
  }

  void read() {
    parser_.get().body().data = bytes_.data();
    parser_.get().body().size = bytes_.size();
    parser_.get().body().more = true;
    http::async_read_some(socket_, buffer_, parser_, [self = shared_from_this()](SocketError error, size_t) {
      if (!self->ended_) self->have_read(error);
    });
  }

  void have_read(SocketError error) {
    if (error == http::error::need_buffer) error = {};
    if (parser_.is_header_done() && !std::exchange(headed_, true)) tell_head();
    const size_t count = headed_ ? bytes_.size() - parser_.get().body().size : 0;
    if (count > 0 && !hooks_.body({bytes_.data(), count})) return end(CallEnd::cancelled, "not wanted");
    if (error)
      return end(CallEnd::broken, headed_ ? "the connection broke within the answer: " + error.message()
                                          : "the connection broke before an answer: " + error.message());
    if (parser_.is_done()) return end(CallEnd::whole, "");
    read();
  }

  void tell_head() {
    AnswerHead head;
    head.status = parser_.get().result_int();
    head.content_type = std::string(parser_.get()[http::field::content_type]);
    head.retry_after = retry_after_of(parser_.get()[http::field::retry_after]);
    hooks_.head(head);
  }

  void end(CallEnd how, const std::string& error) {
    if (std::exchange(ended_, true)) return;
    SocketError ignored;
    timer_.cancel();
    socket_.close(ignored);
    const CallHooks hooks = std::move(hooks_);  // what the hooks hold is destroyed when this call ends
    hooks.ended(how, error);
  }

  Tcp::socket socket_;
  asio::steady_timer timer_;
  const std::string request_;
  CallHooks hooks_;
  boost::beast::flat_buffer buffer_;
  std::array<char, 16 << 10> bytes_;
  http::response_parser<http::buffer_body> parser_;
  bool headed_ = false;
  bool ended_ = false;
};

}  // namespace

class HttpCalls::Parts {
 public:
  explicit Parts(const ServerAddress& address) : address_(address) {
    SocketError error;
    Tcp::resolver resolver(io_);
    places_ = resolver.resolve(address.host, address.port, error);
    if (error)
      throw Error(ErrorKind::run, fmt::format("the host {} is not known: {}", address.host, error.message()),
                  "check --base-url");
  }

  std::string request_text(const std::string& path, const std::string& body, const std::string& api_key) const {
    std::string text =
        fmt::format("{} {}{} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\nUser-Agent: headroom/{}\r\n",
                    body.empty() ? "GET" : "POST", address_.prefix, path, address_.authority(), HEADROOM_VERSION);
    if (!api_key.empty()) text += "Authorization: Bearer " + api_key + "\r\n";
    if (body.empty()) return text + "\r\n";
    return text + fmt::format("Content-Type: application/json\r\nContent-Length: {}\r\n\r\n", body.size()) + body;
  }

  std::function<void()> ask(std::string request, double seconds, CallHooks hooks) {
    const auto call = std::make_shared<Call>(io_, std::move(request), std::move(hooks));
    call->start(places_, seconds);
    return [weak = std::weak_ptr<Call>(call)] {
      if (const auto alive = weak.lock()) alive->cancel();
    };
  }

  void at(double time, std::function<void()> call) {
    auto timer = std::make_shared<asio::steady_timer>(io_, begun_ + span_of(time));
    timer->async_wait([timer, call = std::move(call)](SocketError) { call(); });
  }

  double now() const { return std::chrono::duration<double>(Clock::now() - begun_).count(); }

  void run() {
    io_.restart();
    io_.run();
  }
  void stop() { io_.stop(); }

 private:
  const ServerAddress address_;
  const Clock::time_point begun_ = Clock::now();
  asio::io_context io_;
  Tcp::resolver::results_type places_;
};

HttpCalls::HttpCalls(const ServerAddress& address) : parts_(std::make_unique<Parts>(address)) {}
HttpCalls::~HttpCalls() = default;
std::function<void()> HttpCalls::ask(const std::string& path, const std::string& body, const std::string& api_key,
                                     double seconds, CallHooks hooks) {
  return parts_->ask(parts_->request_text(path, body, api_key), seconds, std::move(hooks));
}
void HttpCalls::at(double time, std::function<void()> call) { parts_->at(time, std::move(call)); }
double HttpCalls::now() const { return parts_->now(); }
void HttpCalls::run() { parts_->run(); }
void HttpCalls::stop() { parts_->stop(); }

}  // namespace headroom::bench
