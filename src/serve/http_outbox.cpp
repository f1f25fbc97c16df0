#include "serve/http_outbox.h"

#include <utility>

#include "base/error.h"
#include "serve/http_text.h"

namespace headroom {
namespace {

class OutboxExchange : public HttpExchange {
 public:
  OutboxExchange(HttpRequest request, HeldBytes body, HeldBytes seat, std::shared_ptr<HttpOutbox> outbox)
      : body_(std::move(body)), seat_(std::move(seat)), request_(std::move(request)), outbox_(std::move(outbox)) {}
  ~OutboxExchange() override { outbox_->abandon(); }

  const HttpRequest& request() const override { return request_; }
  void send(int status, std::string content_type, std::string body, HttpHeaders headers) override {
    outbox_->send(status, std::move(content_type), std::move(body), std::move(headers));
  }
  void begin_events(HttpHeaders headers) override { outbox_->begin_events(std::move(headers)); }
  void event(std::string text) override { outbox_->event(std::move(text)); }
  void end_events(std::string last) override { outbox_->end_events(std::move(last)); }
  void on_gone(std::function<void()> call) override { outbox_->on_gone(std::move(call)); }

 private:
  const HeldBytes body_;  // declared before the request, so that the bytes are returned after its memory is freed
  const HeldBytes seat_;
  const HttpRequest request_;
  const std::shared_ptr<HttpOutbox> outbox_;
};

}  // namespace

HttpShared::HttpShared(const HttpLimits& caps)
    : limits(caps),
      bodies(std::make_shared<ByteBudget>(caps.bodies_bytes)),
      events(std::make_shared<ByteBudget>(caps.events_bytes)),
      answers(std::make_shared<ByteBudget>(caps.answers_bytes)),
      exchanges(std::make_shared<ByteBudget>(caps.connections)) {}

HttpOutbox::HttpOutbox(std::shared_ptr<HttpShared> shared, HttpWaker waker)
    : shared_(std::move(shared)), waker_(std::move(waker)) {}

void HttpOutbox::wake_after(std::unique_lock<std::mutex> lock) {
  const bool first = !std::exchange(woken_, true);
  lock.unlock();
  if (first) waker_.wake();
}

void HttpOutbox::set_whole(int status, std::string content_type, std::string body, HttpHeaders headers) {
  begun_ = ended_ = true;
  pending_ = Part{};
  pending_.begins = pending_.whole = pending_.ends = true;
  pending_.status = status;
  pending_.held = HeldBytes(shared_->answers);
  if (!pending_.held.add(static_cast<int64_t>(body.capacity()))) {
    pending_.status = 503;
    pending_.content_type = "application/json";
    pending_.headers = {{"Retry-After", "1"}};
    pending_.text =
        http_error_body(503, "the memory for answers is used up by clients that read slowly", "answers_full");
    return;
  }
  pending_.content_type = std::move(content_type);
  pending_.headers = std::move(headers);
  pending_.text = std::move(body);
}

void HttpOutbox::send(int status, std::string content_type, std::string body, HttpHeaders headers) {
  std::function<void()> unused;  // destroyed without the lock, because it may own something that calls back
  std::unique_lock lock(mutex_);
  HR_CHECK(!begun_, "a second answer to one request");
  unused = std::exchange(gone_call_, {});
  if (gone_) {
    begun_ = ended_ = true;
    return;
  }
  set_whole(status, std::move(content_type), std::move(body), std::move(headers));
  wake_after(std::move(lock));
}

void HttpOutbox::begin_events(HttpHeaders headers) {
  std::unique_lock lock(mutex_);
  HR_CHECK(!begun_, "a second answer to one request");
  begun_ = true;
  if (gone_) return;
  pending_.begins = true;
  pending_.content_type = "text/event-stream; charset=utf-8";
  pending_.headers = std::move(headers);
  pending_.headers.emplace_back("Cache-Control", "no-cache");
  pending_.headers.emplace_back("X-Accel-Buffering", "no");
  wake_after(std::move(lock));
}

bool HttpOutbox::append(const std::string& events) {
  const auto bytes = static_cast<int64_t>(events.size());
  if (unread_ + bytes > shared_->limits.event_bytes) return false;
  if (pending_.text.empty()) pending_.held = HeldBytes(shared_->events);
  if (!pending_.held.add(bytes)) return false;
  unread_ += bytes;
  pending_.text += events;
  return true;
}

// As for a whole answer: takes the bytes from the budget of answers, for the copy too while it is being made.
bool HttpOutbox::append_last(const std::string& events) {
  const size_t all = pending_.text.size() + events.size();
  pending_.last = HeldBytes(shared_->answers);
  if (!pending_.last.add(static_cast<int64_t>(all + events.size()))) return false;
  unread_ += static_cast<int64_t>(events.size());
  std::string joined;
  joined.reserve(all);
  joined += pending_.text;
  joined += events;
  pending_.text = std::move(joined);
  return true;
}

void HttpOutbox::event(std::string text) {
  std::unique_lock lock(mutex_);
  HR_CHECK(begun_ && !ended_, "an event outside a stream");
  if (gone_ || pending_.cut || text.empty()) return;
  if (!append(text)) {
    pending_.cut = true;
    woken_ = false;  // the session also checks this while it waits for its client
  }
  wake_after(std::move(lock));
}

void HttpOutbox::end_events(std::string last) {
  std::function<void()> unused;
  std::unique_lock lock(mutex_);
  HR_CHECK(begun_ && !ended_, "the end of no stream");
  ended_ = true;
  if (!gone_ && !pending_.cut && !append(last) && !append_last(last)) {
    pending_.cut = true;
    woken_ = false;
  }
  if (!pending_.cut) unused = std::exchange(gone_call_, {});
  if (gone_) return;
  pending_.ends = true;
  wake_after(std::move(lock));
}

void HttpOutbox::on_gone(std::function<void()> call) {
  std::unique_lock lock(mutex_);
  if (ended_) return;
  if (!gone_) {
    gone_call_ = std::move(call);
    return;
  }
  lock.unlock();
  waker_.on_server(std::move(call));
}

void HttpOutbox::abandon() {
  std::function<void()> unused;
  std::unique_lock lock(mutex_);
  unused = std::exchange(gone_call_, {});
  if (gone_ || ended_) return;
  ended_ = true;
  if (begun_) {
    pending_.cut = true;
    woken_ = false;
  } else {
    begun_ = true;
    set_whole(500, "application/json", http_error_body(500, "the request was dropped without an answer", "internal"),
              {});
  }
  wake_after(std::move(lock));
}

bool HttpOutbox::is_cut() {
  const std::lock_guard lock(mutex_);
  return pending_.cut;
}

HttpOutbox::Part HttpOutbox::take() {
  const std::lock_guard lock(mutex_);
  woken_ = false;
  return std::exchange(pending_, Part{});
}

void HttpOutbox::sent(int64_t bytes) {
  const std::lock_guard lock(mutex_);
  unread_ -= bytes;
}

void HttpOutbox::gone() {
  std::function<void()> call;
  Part unsent;
  {
    const std::lock_guard lock(mutex_);
    gone_ = true;
    call = std::exchange(gone_call_, {});
    unsent = std::exchange(pending_, Part{});
  }
  if (call) call();
}

std::shared_ptr<HttpExchange> make_http_exchange(HttpRequest request, HeldBytes body, HeldBytes seat,
                                                 std::shared_ptr<HttpOutbox> outbox) {
  return std::make_shared<OutboxExchange>(std::move(request), std::move(body), std::move(seat), std::move(outbox));
}

}  // namespace headroom
