#include "generate/waiting_line.h"

#include <algorithm>
#include <utility>

#include "base/error.h"

namespace headroom {

void WaitingLine::push(std::unique_ptr<Sequence> sequence) {
  const uint64_t client = sequence->request.client;
  auto turn = std::ranges::find(turns_, client, &Turn::client);
  if (turn == turns_.end()) turn = turns_.insert(turn, Turn{client, {}});
  turn->sequences.push_back(std::move(sequence));
  ++size_;
}

std::unique_ptr<Sequence> WaitingLine::remove(size_t turn, size_t index) {
  std::vector<std::unique_ptr<Sequence>>& sequences = turns_[turn].sequences;
  std::unique_ptr<Sequence> taken = std::move(sequences[index]);
  sequences.erase(sequences.begin() + static_cast<std::ptrdiff_t>(index));
  if (sequences.empty()) turns_.erase(turns_.begin() + static_cast<std::ptrdiff_t>(turn));
  --size_;
  return taken;
}

std::unique_ptr<Sequence> WaitingLine::take(const std::function<bool(Sequence&)>& fits) {
  for (size_t i = 0; i < turns_.size(); ++i) {
    Sequence& first = *turns_[i].sequences.front();
    if (fits(first)) {
      for (size_t passed = 0; passed < i; ++passed) ++turns_[passed].sequences.front()->passes;
      const bool others = turns_[i].sequences.size() > 1;
      std::unique_ptr<Sequence> taken = remove(i, 0);
      const auto at = turns_.begin() + static_cast<std::ptrdiff_t>(i);
      if (others) std::rotate(at, at + 1, turns_.end());
      return taken;
    }
    if (first.passes >= most_passes_) return nullptr;
  }
  return nullptr;
}

std::unique_ptr<Sequence> WaitingLine::remove(SequenceId id) {
  for (size_t turn = 0; turn < turns_.size(); ++turn)
    for (size_t i = 0; i < turns_[turn].sequences.size(); ++i)
      if (turns_[turn].sequences[i]->id == id) return remove(turn, i);
  return nullptr;
}

std::unique_ptr<Sequence> WaitingLine::remove_any() { return turns_.empty() ? nullptr : remove(0, 0); }

void WaitingLine::check() const {
  int64_t size = 0;
  for (const Turn& turn : turns_) {
    HR_CHECK(!turn.sequences.empty(), "client {} has a turn and nothing to run", turn.client);
    HR_CHECK(std::ranges::count(turns_, turn.client, &Turn::client) == 1, "client {} has two turns", turn.client);
    size += static_cast<int64_t>(turn.sequences.size());
    for (const auto& sequence : turn.sequences)
      HR_CHECK(sequence->blocks.table.empty() && sequence->blocks.promised == 0 && sequence->passes <= most_passes_ &&
                   sequence->request.client == turn.client,
               "sequence {} waits with blocks, after {} passes", sequence->id, sequence->passes);
  }
  HR_CHECK(size == size_, "{} sequences wait, {} counted", size, size_);
}

}  // namespace headroom
