// A runner without a model: a row's logits are a hash of the tokens that it sees, read through its table.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "base/counter_random.h"
#include "base/error.h"
#include "generate/step_runner.h"

namespace headroom {

// A text's tokens as one number, as it would be without a pool.
class HistoryHash {
 public:
  // The pool's entry for a token: its own number and the number of the text before it.
  uint64_t stored(int32_t token) const { return mix64(hash_ ^ mix64(static_cast<uint64_t>(token) + 1)); }
  void see(uint64_t stored) { hash_ = mix64(hash_ + stored); }
  void add(int32_t token) { see(stored(token)); }
  void logits(std::span<float> of) const {
    for (size_t id = 0; id < of.size(); ++id)
      of[id] = static_cast<float>(8 * unit_interval(mix64(hash_ ^ (id * 0x9e3779b97f4a7c15ull))) - 4);
  }

 private:
  uint64_t hash_ = 7;
};

// Logits of the token that follows `tokens`.
inline std::vector<float> history_logits(std::span<const int32_t> tokens, int64_t vocab) {
  HistoryHash hash;
  for (const int32_t token : tokens) hash.add(token);
  std::vector<float> logits(static_cast<size_t>(vocab));
  hash.logits(logits);
  return logits;
}

// Throws InternalError for a step that violates its contract. A wrong block, one that others write, or a skipped
// position shows in the logits.
class HistoryRunner : public StepRunner {
 public:
  explicit HistoryRunner(const StepLimits& limits)
      : limits_(limits),
        pool_(static_cast<size_t>(limits.blocks * limits.block_tokens)),
        parked_(static_cast<size_t>(limits.park_slots * limits.block_tokens)) {}

  const StepLimits& limits() const override { return limits_; }
  std::function<void(const Step&)> on_step;  // called before the step runs; may throw
  std::function<bool()> fails;               // if true, writes nonsense to some of the step's rows and throws
  std::function<bool()> area_fails;          // if true, a copy to or from the park area throws when it is partly done
  int64_t rows_run() const { return rows_run_; }

  void park_block(int32_t block, int32_t slot) override { copy(block_of(pool_, block), block_of(parked_, slot)); }
  void restore_block(int32_t slot, int32_t block) override { copy(block_of(parked_, slot), block_of(pool_, block)); }

  std::span<const float> run(const Step& step) override {
    check(step);
    rows_run_ += static_cast<int64_t>(step.rows.size());
    if (on_step) on_step(step);
    const bool failing = fails && fails();
    logits_.assign(step.wanted.size() * static_cast<size_t>(limits_.vocab), 0);
    size_t next = 0;
    for (size_t row = 0; row < step.rows.size(); ++row) {
      const HistoryHash hash = write(step.rows[row], step.tables[static_cast<size_t>(step.rows[row].table)]);
      if (failing && row % 2 == 0)
        at(step.rows[row].position, step.tables[static_cast<size_t>(step.rows[row].table)]) = 1;
      if (next == step.wanted.size() || step.wanted[next] != static_cast<int32_t>(row)) continue;
      hash.logits(
          std::span(logits_).subspan(next++ * static_cast<size_t>(limits_.vocab), static_cast<size_t>(limits_.vocab)));
    }
    if (failing) throw Error(ErrorKind::run, "the device is lost");
    return logits_;
  }
  // For each row its first logits.
  std::span<const float> hidden_states() override {
    hidden_.clear();
    for (size_t row = 0; row < logits_.size(); row += static_cast<size_t>(limits_.vocab))
      hidden_.insert(hidden_.end(), logits_.begin() + static_cast<std::ptrdiff_t>(row),
                     logits_.begin() + static_cast<std::ptrdiff_t>(row) + limits_.hidden);
    return hidden_;
  }

 private:
  std::span<uint64_t> block_of(std::vector<uint64_t>& of, int32_t index) {
    const auto size = static_cast<size_t>(limits_.block_tokens);
    HR_CHECK(index >= 0 && (static_cast<size_t>(index) + 1) * size <= of.size(), "block {}", index);
    return std::span(of).subspan(static_cast<size_t>(index) * size, size);
  }
  void copy(std::span<uint64_t> from, std::span<uint64_t> to) {
    const bool failing = area_fails && area_fails();
    std::ranges::copy(from.first(failing ? from.size() / 2 : from.size()), to.begin());
    if (failing) throw Error(ErrorKind::run, "writing the scratch file: no space left");
  }
  uint64_t& at(int64_t position, std::span<const int32_t> table) {
    const int64_t block = table[static_cast<size_t>(position / limits_.block_tokens)];
    return pool_[static_cast<size_t>(block * limits_.block_tokens + position % limits_.block_tokens)];
  }
  HistoryHash write(const StepRow& row, std::span<const int32_t> table) {
    HistoryHash hash;
    for (int64_t position = 0; position < row.position; ++position) hash.see(at(position, table));
    const uint64_t stored = hash.stored(row.token);
    at(row.position, table) = stored;
    hash.see(stored);
    return hash;
  }
  void check(const Step& step) const {
    HR_CHECK(!step.rows.empty() && static_cast<int64_t>(step.rows.size()) <= limits_.rows, "{} rows", step.rows.size());
    HR_CHECK(static_cast<int64_t>(step.tables.size()) <= limits_.sequences, "{} tables", step.tables.size());
    HR_CHECK(static_cast<int64_t>(step.wanted.size()) <= limits_.logits, "{} wanted", step.wanted.size());
    HR_CHECK(std::ranges::is_sorted(step.wanted, std::less_equal<>()) || step.wanted.size() < 2,
             "wanted not ascending");
    HR_CHECK(step.wanted.empty() || step.wanted.back() < static_cast<int32_t>(step.rows.size()), "wanted beyond rows");
    std::vector<int32_t> last(step.tables.size(), -1);
    for (const StepRow& row : step.rows) {
      const std::span<const int32_t> table = step.tables[static_cast<size_t>(row.table)];
      HR_CHECK(row.token >= 0 && row.token < limits_.vocab && row.position < limits_.positions, "token {} at {}",
               row.token, row.position);
      HR_CHECK(static_cast<int64_t>(table.size()) <= limits_.table_blocks &&
                   row.position < static_cast<int64_t>(table.size()) * limits_.block_tokens,
               "position {} of a table of {}", row.position, table.size());
      int32_t& before = last[static_cast<size_t>(row.table)];
      HR_CHECK(before < 0 || row.position == before + 1, "position {} after {}", row.position, before);
      before = row.position;
    }
  }

  StepLimits limits_;
  std::vector<uint64_t> pool_, parked_;
  int64_t rows_run_ = 0;
  std::vector<float> logits_, hidden_;
};

}  // namespace headroom
