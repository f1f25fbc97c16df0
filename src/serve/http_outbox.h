// What an answer's maker has said and the connection has yet to send: filled from any thread, emptied on the server's.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>

#include "serve/byte_budget.h"
#include "serve/http_exchange.h"
#include "serve/http_server.h"

namespace headroom {

// The caps of one server and the budgets behind them; outlives the server where an exchange does.
struct HttpShared {
  explicit HttpShared(const HttpLimits& caps);
  const HttpLimits limits;
  std::shared_ptr<ByteBudget> bodies;
  std::shared_ptr<ByteBudget> events;
  std::shared_ptr<ByteBudget> answers;
  std::shared_ptr<ByteBudget> exchanges;  // of these, each is one
};

// How other threads reach the server's. Both may be called for as long as somebody holds the object.
struct HttpWaker {
  std::function<void()> wake;                            // soon, the connection looks into its outbox
  std::function<void(std::function<void()>)> on_server;  // runs it on the server's thread; here, if that has ended
};

class HttpOutbox {
 public:
  // What has come since the last call, in the order in which it is sent.
  struct Part {
    bool begins = false;  // status, headers and content_type are set
    int status = 200;
    std::string content_type;
    HttpHeaders headers;
    std::string text;  // the whole answer, or events
    bool whole = false;
    bool ends = false;
    bool cut = false;  // the maker gave up amid a stream, or its client reads too slowly: close without an end
    HeldBytes held;    // for `text`: kept until it is sent
    HeldBytes last;    // for the last events in it, where they have no room in the buffer of a stream
    bool empty() const { return !begins && text.empty() && !ends && !cut; }
  };

  HttpOutbox(std::shared_ptr<HttpShared> shared, HttpWaker waker);

  // The maker's side: as HttpExchange says.
  void send(int status, std::string content_type, std::string body, HttpHeaders headers);
  void begin_events(HttpHeaders headers);
  void event(std::string text);
  void end_events(std::string last);
  void on_gone(std::function<void()> call);
  // Nobody will answer any more: 500, or a stream without its end. Nothing after a whole answer.
  void abandon();

  // The server's side.
  bool is_cut();
  Part take();
  void sent(int64_t bytes);  // of events that were taken
  void gone();               // calls what on_gone() left

 private:
  bool append(const std::string& events);
  bool append_last(const std::string& events);
  void wake_after(std::unique_lock<std::mutex> lock);
  void set_whole(int status, std::string content_type, std::string body, HttpHeaders headers);

  const std::shared_ptr<HttpShared> shared_;
  const HttpWaker waker_;
  std::mutex mutex_;
  Part pending_;
  int64_t unread_ = 0;  // bytes of events, pending or taken and not sent
  bool begun_ = false;  // an answer has been begun
  bool ended_ = false;  // and is complete
  bool gone_ = false;   // nobody reads it
  bool woken_ = false;  // the server knows that something is pending
  std::function<void()> gone_call_;
};

// The exchange over an outbox. Its end without an answer is one: 500.
std::shared_ptr<HttpExchange> make_http_exchange(HttpRequest request, HeldBytes body, HeldBytes seat,
                                                 std::shared_ptr<HttpOutbox> outbox);

}  // namespace headroom
