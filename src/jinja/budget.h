// What one rendering may use: steps, bytes alive, bytes of one text, depth of nesting.
#pragma once

#include <cstdint>
#include <utility>

namespace headroom::jinja {

struct Limits {
  int64_t template_bytes = int64_t{256} << 10;
  int64_t steps = 4'000'000;               // expressions and statements evaluated, and 64-byte pieces of text touched
  int64_t text_bytes = int64_t{8} << 20;   // of one text; the output is one
  int64_t live_bytes = int64_t{32} << 20;  // of all values that are alive at once
  int64_t depth = 400;                     // of nested expressions, statements and macro calls together
};

// Counts what a rendering uses. Every member that counts throws Problem(limit) when the limit is reached. Used by one
// thread; outlives the values that are charged to it.
class Budget {
 public:
  explicit Budget(const Limits& limits) : limits_(limits) {}
  Budget(const Budget&) = delete;
  Budget& operator=(const Budget&) = delete;

  const Limits& limits() const { return limits_; }
  int64_t steps() const { return steps_; }

  void step(int64_t count = 1) {
    if ((steps_ += count) > limits_.steps) exceed_steps();
  }
  // One step for every 64 bytes that are copied, searched or compared.
  void touch(uint64_t bytes) { step(static_cast<int64_t>(bytes / 64)); }
  // Called before a text of this many bytes is made.
  void check_text(uint64_t bytes) {
    if (bytes > static_cast<uint64_t>(limits_.text_bytes)) exceed_text();
    touch(bytes);
  }
  void hold(int64_t bytes) {
    if (bytes > limits_.live_bytes - live_) exceed_live();
    live_ += bytes;
  }
  void release(int64_t bytes) { live_ -= bytes; }
  void enter() {
    if (++depth_ > limits_.depth) exceed_depth();
  }
  void leave() { --depth_; }

 private:
  [[noreturn]] void exceed_steps() const;
  [[noreturn]] void exceed_text() const;
  [[noreturn]] void exceed_live() const;
  [[noreturn]] void exceed_depth();

  Limits limits_;
  int64_t steps_ = 0;
  int64_t live_ = 0;
  int64_t depth_ = 0;
};

// One level of nesting for as long as this lives.
class Level {
 public:
  explicit Level(Budget& budget) : budget_(budget) { budget.enter(); }
  ~Level() { budget_.leave(); }
  Level(const Level&) = delete;
  Level& operator=(const Level&) = delete;

 private:
  Budget& budget_;
};

// Bytes held in a budget for as long as this lives. Without a budget it counts nothing.
class Charge {
 public:
  Charge() = default;
  Charge(Budget& budget, int64_t bytes) : budget_(&budget) { add(bytes); }
  Charge(Charge&& other) noexcept
      : budget_(std::exchange(other.budget_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}
  Charge& operator=(Charge&& other) noexcept {
    std::swap(budget_, other.budget_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~Charge() {
    if (budget_ != nullptr) budget_->release(bytes_);
  }
  void add(int64_t bytes) {
    if (budget_ == nullptr) return;
    budget_->hold(bytes);
    bytes_ += bytes;
  }

 private:
  Budget* budget_ = nullptr;
  int64_t bytes_ = 0;
};

}  // namespace headroom::jinja
