// HTTP requests and timers on one thread: many answers at once, read as they come.
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

// Called on the thread of run(), from within it.
struct CallHooks {
  std::function<void(const AnswerHead&)> head;
  std::function<bool(std::string_view)> body;                        // false: the rest is not wanted
  std::function<void(CallEnd end, const std::string& error)> ended;  // once, at the end
};

class HttpCalls {
 public:
  // Throws Error(run) where the host's name is not known.
  explicit HttpCalls(const ServerAddress& address);
  ~HttpCalls();

  // Begins a request on a connection of its own; `path` is without the address's prefix. It ends as timed_out after
  // `seconds`. A body makes it a POST of JSON. The function that is returned cancels it; it may be called at any time
  // before this object's end.
  std::function<void()> ask(const std::string& path, const std::string& body, const std::string& api_key,
                            double seconds, CallHooks hooks);
  // Calls on the thread of run() at that time of now().
  void at(double time, std::function<void()> call);
  // Seconds since this object was made.
  double now() const;
  // Until nothing is under way, or stop(), which drops what is.
  void run();
  void stop();

 private:
  class Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace headroom::bench
