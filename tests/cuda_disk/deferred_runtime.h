// A runtime whose streams defer their work: it is done only when the host waits for it, or for a stream that waits for
// it. cuda_shim/host_runtime.h is the other extreme, where everything is done at once; a GPU is in between. May be used
// by several threads.
#pragma once

#include <deque>
#include <map>
#include <mutex>
#include <utility>

#include "device/cuda/cuda_runtime.h"

namespace headroom::test {

// Faults that the tests must find.
enum class Fault { none, streams_do_not_wait, host_does_not_wait };

struct Deferral {
  // Work of the stream created first is done when it is queued, like the shim's kernels.
  bool computes_at_once = false;
  Fault fault = Fault::none;
};

class DeferredRuntime : public CudaRuntime {
 public:
  // Memory comes from `inner`.
  DeferredRuntime(std::unique_ptr<CudaRuntime> inner, const Deferral& deferral)
      : inner_(std::move(inner)), deferral_(deferral) {}

  void enter_thread() override {}
  CudaProperties properties() override { return inner_->properties(); }
  CudaMemory memory() override { return inner_->memory(); }
  std::byte* allocate(int64_t bytes) override { return inner_->allocate(bytes); }
  std::byte* allocate_pinned(int64_t bytes) override { return inner_->allocate_pinned(bytes); }
  void release(std::byte* device) noexcept override { inner_->release(device); }
  void release_pinned(std::byte* host) noexcept override { inner_->release_pinned(host); }
  CudaStream create_stream() override {
    const CudaStream stream = inner_->create_stream();
    if (!first_) first_ = stream;
    return stream;
  }
  CudaEvent create_event() override { return inner_->create_event(); }
  void destroy(CudaStream) noexcept override {}
  void destroy(CudaEvent) noexcept override {}

  void record(CudaEvent event, CudaStream stream) override {
    const std::lock_guard lock(mutex_);
    const Mark mark{event, ++events_[event].recorded, stream};
    events_[event].stream = stream;
    queue({nullptr, nullptr, 0, {}, mark}, stream);
  }
  void wait(CudaStream stream, CudaEvent event) override {
    const std::lock_guard lock(mutex_);
    if (deferral_.fault == Fault::streams_do_not_wait) return;
    queue({nullptr, nullptr, 0, newest(event), {}}, stream);
  }
  void synchronize(CudaStream stream) override {
    const std::lock_guard lock(mutex_);
    while (!work_[stream].empty()) do_next(stream);
  }
  void synchronize(CudaEvent event) override {
    const std::lock_guard lock(mutex_);
    if (deferral_.fault != Fault::host_does_not_wait) reach(newest(event));
  }
  void copy(void* to, const void* from, int64_t bytes, CudaStream stream) override {
    const std::lock_guard lock(mutex_);
    queue({to, from, bytes, {}, {}}, stream);
  }
  void fill(void* at, int value, int64_t bytes, CudaStream stream) override {
    synchronize(stream);
    inner_->fill(at, value, bytes, stream);
  }

  void begin_capture(CudaStream stream) override { inner_->begin_capture(stream); }
  CudaGraph end_capture(CudaStream stream) override { return inner_->end_capture(stream); }
  void abandon_capture(CudaStream stream) noexcept override { inner_->abandon_capture(stream); }
  void launch(CudaGraph graph, CudaStream stream) override {
    synchronize(stream);
    inner_->launch(graph, stream);
  }
  void destroy(CudaGraph graph) noexcept override { inner_->destroy(graph); }

 private:
  // An event's record, with its number.
  struct Mark {
    CudaEvent event = nullptr;
    int64_t number = 0;
    CudaStream stream = nullptr;
  };
  struct Event {
    int64_t recorded = 0, reached = 0;
    CudaStream stream = nullptr;
  };
  // A copy, a wait or a record.
  struct Work {
    void* to = nullptr;
    const void* from = nullptr;
    int64_t bytes = 0;
    Mark waits_for, records;
  };

  Mark newest(CudaEvent event) { return {event, events_[event].recorded, events_[event].stream}; }
  void queue(const Work& work, CudaStream stream) {
    work_[stream].push_back(work);
    if (deferral_.computes_at_once && stream == first_) do_next(stream);
  }
  void reach(const Mark& mark) {
    while (events_[mark.event].reached < mark.number) do_next(mark.stream);
  }
  void do_next(CudaStream stream) {
    const Work work = work_[stream].front();
    work_[stream].pop_front();
    if (work.waits_for.event) reach(work.waits_for);
    if (work.to) inner_->copy(work.to, work.from, work.bytes, stream);
    if (work.records.event) events_[work.records.event].reached = work.records.number;
  }

  std::unique_ptr<CudaRuntime> inner_;
  Deferral deferral_;
  CudaStream first_ = nullptr;
  std::mutex mutex_;
  std::map<CudaStream, std::deque<Work>> work_;
  std::map<CudaEvent, Event> events_;
};

}  // namespace headroom::test
