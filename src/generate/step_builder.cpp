#include "generate/step_builder.h"

#include <algorithm>

#include "base/error.h"

namespace headroom {

StepBuilder::StepBuilder(const StepLimits& limits) : limits_(limits) {
  step_.rows.reserve(static_cast<size_t>(limits.rows));
  step_.tables.reserve(static_cast<size_t>(limits.sequences));
  step_.wanted.reserve(static_cast<size_t>(limits.logits));
  prompts_.reserve(static_cast<size_t>(limits.sequences));
}

int64_t StepBuilder::most_running(const StepLimits& limits) {
  return std::min({limits.rows, limits.sequences, limits.logits});
}

int64_t StepBuilder::memory_bytes(const StepLimits& limits) {
  return limits.rows * static_cast<int64_t>(sizeof(StepRow)) +
         limits.sequences * static_cast<int64_t>(sizeof(std::span<const int32_t>) + sizeof(Sequence*)) +
         limits.logits * static_cast<int64_t>(sizeof(int32_t));
}

int64_t StepBuilder::chunk_of(const Sequence& sequence, int64_t& rows, int64_t& logits) {
  int64_t count = std::min(sequence.left(), rows), wanted = 0;
  if (sequence.wants_all())
    wanted = count = std::min(count, logits);
  else if (count == sequence.left() && (sequence.draws() || sequence.pools()))
    wanted = std::min<int64_t>(logits, 1), count -= 1 - wanted;
  rows -= count;
  logits -= wanted;
  return count;
}

void StepBuilder::choose_whole(std::span<const std::unique_ptr<Sequence>> running) const {
  int64_t rows = limits_.rows;
  for (const auto& sequence : running) {
    sequence->chunk = sequence->left() <= rows ? sequence->left() : 0;
    rows -= sequence->chunk;
  }
}

void StepBuilder::choose(std::span<const std::unique_ptr<Sequence>> running) {
  if (limits_.whole_sequences) return choose_whole(running);
  int64_t rows = limits_.rows, logits = limits_.logits;
  prompts_.clear();
  for (const auto& sequence : running) {
    sequence->chunk = 0;
    if (sequence->left() == 1)
      sequence->chunk = chunk_of(*sequence, rows, logits);
    else
      prompts_.push_back(sequence.get());
  }
  if (prompts_.empty()) return;
  Sequence& oldest = *prompts_.front();
  int64_t half_rows = (rows + 1) / 2, half_logits = (logits + 1) / 2;
  rows -= half_rows, logits -= half_logits;
  oldest.chunk = chunk_of(oldest, half_rows, half_logits);
  rows += half_rows, logits += half_logits;
  std::sort(prompts_.begin() + 1, prompts_.end(), [](const Sequence* a, const Sequence* b) {
    return a->left() < b->left() || (a->left() == b->left() && a->id < b->id);
  });
  for (size_t i = 1; i < prompts_.size(); ++i) prompts_[i]->chunk = chunk_of(*prompts_[i], rows, logits);
  // The oldest also gets what no other takes. Its chunk ended a row before the prompt's end if it had no logits.
  if (oldest.chunk == oldest.left()) return;
  rows += oldest.chunk, logits += oldest.wants_all() ? oldest.chunk : 0;
  oldest.chunk = chunk_of(oldest, rows, logits);
}

const Step& StepBuilder::build(std::span<const std::unique_ptr<Sequence>> running) {
  step_.rows.clear();
  step_.tables.clear();
  step_.wanted.clear();
  for (const auto& sequence : running) {
    if (sequence->chunk == 0) continue;
    const auto table = static_cast<int32_t>(step_.tables.size());
    step_.tables.emplace_back(sequence->blocks.table);
    for (int64_t at = sequence->filled; at < sequence->filled + sequence->chunk; ++at) {
      if (sequence->wants(at)) step_.wanted.push_back(static_cast<int32_t>(step_.rows.size()));
      step_.rows.push_back(
          {sequence->tokens[static_cast<size_t>(at)], static_cast<int32_t>(at), table, sequence->request.adapter.slot});
    }
  }
  HR_CHECK(static_cast<int64_t>(step_.rows.size()) <= limits_.rows &&
               static_cast<int64_t>(step_.tables.size()) <= limits_.sequences &&
               static_cast<int64_t>(step_.wanted.size()) <= limits_.logits,
           "a step of {} rows, {} sequences, {} rows of logits", step_.rows.size(), step_.tables.size(),
           step_.wanted.size());
  return step_;
}

}  // namespace headroom
