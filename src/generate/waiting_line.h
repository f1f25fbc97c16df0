// The waiting sequences, and whose turn it is.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "generate/sequence.h"

namespace headroom {

// Clients take turns; a client's sequences come in the order of their arrival. A served client goes to the end of the
// line, where new ones also start. A client whose first sequence does not fit keeps its position, and the next one is
// served before it, but at most `most_passes` times; after that all wait until it fits.
//
// So with at most c clients, at most (k + 1) * (c - 1 + most_passes) + k others are served before a sequence that has k
// of its own client before it, not counting cancelled ones. Used by one thread.
class WaitingLine {
 public:
  explicit WaitingLine(int64_t most_passes) : most_passes_(most_passes) {}

  int64_t size() const { return size_; }
  void push(std::unique_ptr<Sequence> sequence);
  // The sequence whose turn it is among those that `fits` accepts, which is called in the order of turns; null: none.
  std::unique_ptr<Sequence> take(const std::function<bool(Sequence&)>& fits);
  // Removes that sequence, or any; null if there is none.
  std::unique_ptr<Sequence> remove(SequenceId id);
  std::unique_ptr<Sequence> remove_any();
  void check() const;

 private:
  struct Turn {
    uint64_t client;
    std::vector<std::unique_ptr<Sequence>> sequences;  // at least one
  };
  std::unique_ptr<Sequence> remove(size_t turn, size_t index);

  int64_t most_passes_;
  std::vector<Turn> turns_;
  int64_t size_ = 0;
};

}  // namespace headroom
