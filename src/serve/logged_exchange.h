// An exchange that writes a line to the log when it is answered.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "serve/http_exchange.h"

namespace headroom {

class LoggedExchange final : public HttpExchange {
 public:
  // `log` must outlive the exchange.
  LoggedExchange(std::shared_ptr<HttpExchange> inner, const std::function<void(const std::string&)>& log)
      : inner_(std::move(inner)), log_(log) {}

  // Not answered: the client had left.
  ~LoggedExchange() override {
    if (!written_) write(499, bytes_);
  }
  LoggedExchange(const LoggedExchange&) = delete;
  LoggedExchange& operator=(const LoggedExchange&) = delete;

  const HttpRequest& request() const override { return inner_->request(); }
  void send(int status, std::string content_type, std::string body, HttpHeaders headers = {}) override {
    write(status, body.size());
    inner_->send(status, std::move(content_type), std::move(body), std::move(headers));
  }
  void begin_events(HttpHeaders headers = {}) override { inner_->begin_events(std::move(headers)); }
  void event(std::string text) override {
    bytes_ += text.size();
    inner_->event(std::move(text));
  }
  void end_events(std::string last = {}) override {
    write(200, bytes_ + last.size());
    inner_->end_events(std::move(last));
  }
  void on_gone(std::function<void()> call) override { inner_->on_gone(std::move(call)); }

 private:
  // A client chooses its request's id and path, so they are quoted: a line stays one line.
  void write(int status, size_t bytes) {
    written_ = true;
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begun_;
    log_(fmt::format("id={:?} client={} method={:?} path={:?} status={} bytes={} seconds={:.3f}", request().request_id,
                     request().client, request().method, request().path, status, bytes, seconds.count()));
  }

  std::shared_ptr<HttpExchange> inner_;
  const std::function<void(const std::string&)>& log_;
  std::chrono::steady_clock::time_point begun_ = std::chrono::steady_clock::now();
  size_t bytes_ = 0;
  bool written_ = false;
};

}  // namespace headroom
