// Output of an answer that the connection has yet to send: filled from any thread, emptied on the server's thread.
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

// A server's limits and their budgets; exchanges may keep it alive longer than the server.
struct HttpShared {
  explicit HttpShared(const HttpLimits& caps);
  const HttpLimits limits;
  std::shared_ptr<ByteBudget> bodies;
  std::shared_ptr<ByteBudget> events;
  std::shared_ptr<ByteBudget> answers;
  std::shared_ptr<ByteBudget> exchanges;  // in exchanges, not in bytes
};

// How other threads reach the server's thread. Both may be called as long as the object lives.
struct HttpWaker {
  std::function<void()> wake;                            // the connection will soon check its outbox
  std::function<void(std::function<void()>)> on_server;  // runs it on the server's thread, or here if that has ended
};

class HttpOutbox {
 public:
  // The output since the last call, in sending order.
  struct Part {
    bool begins = false;  // status, headers and content_type are set
    int status = 200;
    std::string content_type;
    HttpHeaders headers;
    std::string text;  // the whole answer, or events
    bool whole = false;
    bool ends = false;
    bool cut = false;  // close without an end: the maker gave up during a stream, or the client reads too slowly
    HeldBytes held;    // for `text`, until it is sent
    HeldBytes last;    // for the last events in it, if they exceed the buffer of a stream
    bool empty() const { return !begins && text.empty() && !ends && !cut; }
  };

  HttpOutbox(std::shared_ptr<HttpShared> shared, HttpWaker waker);

  // The maker's side: see HttpExchange.
  void send(int status, std::string content_type, std::string body, HttpHeaders headers);
  void begin_events(HttpHeaders headers);
  void event(std::string text);
  void end_events(std::string last);
  void on_gone(std::function<void()> call);
  // There will be no more output: sends 500, or closes a stream without its end. Does nothing after a whole answer.
  void abandon();

  // The server's side.
  bool is_cut();
  Part take();
  void sent(int64_t bytes);  // bytes of events taken by take()
  void gone();               // calls the function of on_gone()

 private:
  bool append(const std::string& events);
  bool append_last(const std::string& events);
  void wake_after(std::unique_lock<std::mutex> lock);
  void set_whole(int status, std::string content_type, std::string body, HttpHeaders headers);

  const std::shared_ptr<HttpShared> shared_;
  const HttpWaker waker_;
  std::mutex mutex_;
  Part pending_;
  int64_t unread_ = 0;  // bytes of events, pending or taken but not sent
  bool begun_ = false;  // an answer has begun
  bool ended_ = false;  // the answer is complete
  bool gone_ = false;   // the client has left
  bool woken_ = false;  // the server knows that there is output
  std::function<void()> gone_call_;
};

// An exchange that writes to an outbox. If it ends without an answer, the answer is 500.
std::shared_ptr<HttpExchange> make_http_exchange(HttpRequest request, HeldBytes body, HeldBytes seat,
                                                 std::shared_ptr<HttpOutbox> outbox);

}  // namespace headroom
