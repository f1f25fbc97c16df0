// HTTP requests and timers on one thread: many answers at once, read as they arrive.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "bench_serve/server_address.h"

namespace headroom::bench {

struct AnswerHead {
  int status = 0;
  std::string content_type;
  std::optional<double> retry_after;  // seconds; a date counts as 1
};

enum class CallEnd : uint8_t { whole, broken, timed_out, unreachable, cancelled };

// Called on the thread of run(), from inside it.
struct CallHooks {
  std::function<void(const AnswerHead&)> head;
  std::function<bool(std::string_view)> body;                        // return false if the rest is not needed
  std::function<void(CallEnd end, const std::string& error)> ended;  // called once, at the end
};

class HttpCalls {
 public:
  // Throws Error(run) when the host's name cannot be resolved.
  explicit HttpCalls(const ServerAddress& address);
  ~HttpCalls();

  // Starts a request on a new connection; `path` does not include the address's prefix. It ends as timed_out after
  // `seconds`. With a body it is a POST of JSON. The returned function cancels it; it may be called at any time while
  // this object lives.
  std::function<void()> ask(const std::string& path, const std::string& body, const std::string& api_key,
                            double seconds, CallHooks hooks);
  // Calls `call` on the thread of run() when now() reaches `time`.
  void at(double time, std::function<void()> call);
  // Seconds since this object was created.
  double now() const;
  // Runs until no request or timer is left, or until stop(), which drops them.
  void run();
  void stop();

 private:
  class Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace headroom::bench
