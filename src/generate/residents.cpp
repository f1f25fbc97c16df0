#include "generate/residents.h"

#include <algorithm>
#include <exception>

#include "base/error.h"
#include "generate/step_builder.h"

namespace headroom {

Residents::Residents(StepRunner& runner, const SchedulerOptions& options, Failed failed)
    : runner_(runner),
      limits_(runner.limits()),
      options_(options),
      failed_(std::move(failed)),
      blocks_(limits_.blocks, limits_.block_tokens, options.prefix_index, balanced() ? limits_.park_slots : 0),
      order_(balanced() ? limits_.blocks : 0, StepBuilder::most_running(limits_)) {
  running_.reserve(static_cast<size_t>(StepBuilder::most_running(limits_)));
  parked_.reserve(static_cast<size_t>(StepBuilder::most_running(limits_)));
  by_age_.reserve(static_cast<size_t>(StepBuilder::most_running(limits_)));
  courses_.reserve(static_cast<size_t>(StepBuilder::most_running(limits_)));
}

// Whether all running sequences could take all that they may. Then every slack of EndOrder is at least 0, whatever they
// take.
bool Residents::loose() const {
  int64_t all = 0;
  for (const auto& sequence : running_) all += sequence->blocks.unpromised;
  return all <= blocks_.available();
}

bool Residents::may_follow() const { return loose(); }

void Residents::look() {
  by_age_.clear();
  for (const auto& sequence : running_) by_age_.push_back(&sequence->blocks);
  order_.look(by_age_, blocks_.available());
}

void Residents::look_with(const SequenceBlocks& more, size_t place) {
  by_age_.clear();
  for (const auto& sequence : running_) by_age_.push_back(&sequence->blocks);
  by_age_.insert(by_age_.begin() + static_cast<std::ptrdiff_t>(place), &more);
  order_.look(by_age_, blocks_.available());
}

ExpectedCourse Residents::course(const Sequence& sequence, size_t place) const {
  const SequenceBlocks& blocks = sequence.blocks;
  const auto has = static_cast<int64_t>(blocks.table.size());
  const int64_t answer = lengths_.expected(sequence.drawn, sequence.request.max_tokens);
  return {std::max<int64_t>(answer - sequence.drawn, 1), static_cast<int64_t>(sequence.tokens.size()), has,
          blocks.promised == 0 && blocks.unpromised > 0, order_.gives_back(place)};
}

bool Residents::expected_to_fit(const Sequence& more, size_t place) {
  courses_.clear();
  for (size_t i = 0; i < running_.size(); ++i) courses_.push_back(course(*running_[i], i < place ? i : i + 1));
  courses_.push_back(course(more, place));
  return expected_growth(courses_, limits_.block_tokens) <= blocks_.available();
}

bool Residents::admit(Sequence& sequence, bool reuse) {
  SequenceBlocks& blocks = sequence.blocks;
  const int64_t needed = limits_.blocks_for(sequence.most_filled());
  if (!balanced()) return blocks_.admit(blocks, sequence.tokens, needed, Promise::whole, reuse);
  if (!parked_.empty() || (stalled_ > 0 && !running_.empty())) return false;
  if (!blocks_.admit(blocks, sequence.tokens, needed, Promise::none, reuse)) return false;
  if (running_.empty()) return true;
  // Blocks of it that are shared now are no longer returned by the others when they end.
  look_with(blocks, running_.size());
  const int64_t first = limits_.blocks_for(sequence.prompt) - static_cast<int64_t>(blocks.table.size());
  const bool room =
      order_.safe() && first <= order_.spare(running_.size()) && expected_to_fit(sequence, running_.size());
  if (!room) blocks_.release(blocks);
  return room;
}

Sequence& Residents::enter(std::unique_ptr<Sequence> sequence) {
  sequence->age = ++admitted_;
  running_.push_back(std::move(sequence));
  return *running_.back();
}

size_t Residents::place_of(const Sequence& sequence, std::span<const std::unique_ptr<Sequence>> by_age) {
  const auto younger = [&](const auto& other) { return other->age > sequence.age; };
  return static_cast<size_t>(std::ranges::find_if(by_age, younger) - by_age.begin());
}

void Residents::resume() {
  while (!parked_.empty() && return_oldest()) {
  }
}

bool Residents::return_oldest() {
  Sequence& sequence = *parked_.front();
  const bool whole = sequence.parks >= options_.most_parks;
  const size_t place = place_of(sequence, running_);
  blocks_.reclaim(sequence.blocks, sequence.tokens);
  if (!has_room(sequence, place, whole)) {
    blocks_.leave(sequence.blocks);
    return false;
  }
  if (whole) blocks_.promise_rest(sequence.blocks);
  running_.insert(running_.begin() + static_cast<std::ptrdiff_t>(place), std::move(parked_.front()));
  parked_.erase(parked_.begin());
  ++resumes_;
  try {
    loaded_ += blocks_.restore(sequence.blocks, sequence.tokens,
                               [this](int32_t slot, int32_t block) { runner_.restore_block(slot, block); });
  } catch (const std::exception& error) {
    failed_(sequence, error.what());
    remove_ended();
  }
  return true;
}

// Its blocks and, if something runs, those that it is expected to take, without a slack below 0.
bool Residents::has_room(const Sequence& parked, size_t place, bool whole) {
  const SequenceBlocks& blocks = parked.blocks;
  const auto found = static_cast<int64_t>(blocks.table.size());
  const int64_t fresh = static_cast<int64_t>(blocks.parked.size()) - found;
  look_with(blocks, place);
  if (!order_.safe()) return false;
  const int64_t spare = std::min(order_.spare(place), blocks_.available());
  if (whole) return blocks.unpromised <= spare;
  return fresh <= spare && (running_.empty() || expected_to_fit(parked, place));
}

void Residents::give(Sequence& sequence) {
  blocks_.grow(sequence.blocks, limits_.blocks_for(sequence.filled + sequence.chunk));
}

void Residents::give_blocks() {
  stalled_ = 0;
  if (!loose()) return give_tight();
  for (const auto& sequence : running_)
    if (sequence->chunk > 0) give(*sequence);
}

void Residents::give_tight() {
  look();
  int64_t spare = EndOrder::kAll;  // the smallest slack of the older ones
  for (size_t i = 0; i < running_.size(); ++i) {
    Sequence& sequence = *running_[i];
    SequenceBlocks& blocks = sequence.blocks;
    int64_t wanted = 0;
    if (sequence.chunk > 0 && blocks.promised == 0)
      wanted = std::max<int64_t>(
          limits_.blocks_for(sequence.filled + sequence.chunk) - static_cast<int64_t>(blocks.table.size()), 0);
    while (wanted > spare && park_younger(i)) {
      look();
      spare = order_.spare(i);
    }
    if (wanted > spare) {
      ++stalled_;
      wanted = spare;
      const int64_t room = static_cast<int64_t>(blocks.table.size()) + wanted;
      sequence.chunk = std::max<int64_t>(room * limits_.block_tokens - sequence.filled, 0);
    }
    if (sequence.chunk > 0) give(sequence);
    spare = std::min(spare - wanted, order_.slack(i));
  }
}

bool Residents::park_younger(size_t than) {
  for (size_t place = running_.size() - 1; place > than; --place) {
    const Sequence& sequence = *running_[place];
    if (sequence.parks >= options_.most_parks || blocks_.frees(sequence.blocks) == 0 ||
        !blocks_.can_park(sequence.blocks))
      continue;
    park(place);
    return true;
  }
  return false;
}

void Residents::park(size_t place) {
  Sequence& sequence = *running_[place];
  try {
    saved_ += blocks_.park(sequence.blocks, [this](int32_t block, int32_t slot) { runner_.park_block(block, slot); });
  } catch (const std::exception& error) {
    failed_(sequence, error.what());
    return remove_ended();
  }
  sequence.chunk = 0;
  ++parks_;
  most_parks_ = std::max(most_parks_, ++sequence.parks);
  const auto at = static_cast<std::ptrdiff_t>(place);
  const auto to = static_cast<std::ptrdiff_t>(place_of(sequence, parked_));
  parked_.insert(parked_.begin() + to, std::move(running_[place]));
  running_.erase(running_.begin() + at);
}

void Residents::learn(const Sequence& sequence) {
  if (balanced() && sequence.draws()) lengths_.add(sequence.drawn, sequence.request.max_tokens);
}

Sequence* Residents::find(SequenceId id) {
  for (const auto* all : {&running_, &parked_})
    for (const auto& sequence : *all)
      if (sequence->id == id) return sequence.get();
  return nullptr;
}

void Residents::each(const std::function<void(Sequence&)>& call) {
  for (const auto* all : {&running_, &parked_})
    for (const auto& sequence : *all) call(*sequence);
}

void Residents::remove_ended() {
  for (auto* all : {&running_, &parked_}) std::erase_if(*all, [](const auto& sequence) { return sequence->ended; });
}

void Residents::count(SchedulerCounts& counts) const {
  counts.running = static_cast<int64_t>(running_.size());
  counts.parked = static_cast<int64_t>(parked_.size());
  counts.blocks = blocks_.size();
  counts.blocks_used = blocks_.used();
  counts.blocks_kept = blocks_.kept();
  counts.park_slots = blocks_.park_slots();
  counts.park_slots_used = blocks_.park_slots_used();
  counts.stalled = stalled_;
  counts.parks = parks_;
  counts.resumes = resumes_;
  counts.most_parks = most_parks_;
  counts.blocks_saved = saved_;
  counts.blocks_loaded = loaded_;
}

int64_t Residents::memory_bytes(const StepLimits& limits, const SchedulerOptions& options) {
  const bool balanced = options.rule == AdmissionRule::balanced;
  const int64_t running = StepBuilder::most_running(limits), slots = balanced ? limits.park_slots : 0;
  const int64_t lists = running * static_cast<int64_t>(3 * sizeof(void*) + sizeof(ExpectedCourse));
  const int64_t tables = running * limits.table_blocks * static_cast<int64_t>(sizeof(int32_t)) * (slots > 0 ? 2 : 1);
  return BlockStore::memory_bytes(limits.blocks, limits.block_tokens, options.prefix_index, slots) +
         EndOrder::memory_bytes(balanced ? limits.blocks : 0, running) + lists + tables;
}

void Residents::check() const {
  std::vector<const SequenceBlocks*> all, running;
  const auto by_age = [](const auto& a, const auto& b) { return a->age < b->age; };
  HR_CHECK(std::ranges::is_sorted(running_, by_age) && std::ranges::is_sorted(parked_, by_age), "not by age");
  for (const auto* list : {&running_, &parked_})
    for (const auto& sequence : *list) {
      const SequenceBlocks& blocks = sequence->blocks;
      const auto has = static_cast<int64_t>((list == &running_ ? blocks.table : blocks.parked).size());
      const int64_t taken = list == &running_ ? has : 0;
      all.push_back(&blocks);
      HR_CHECK(has == limits_.blocks_for(sequence->filled) &&
                   taken + blocks.promised + blocks.unpromised == limits_.blocks_for(sequence->most_filled()) &&
                   (balanced() || blocks.unpromised == 0),
               "sequence {}: {} blocks, {} promised and {} others for {} tokens", sequence->id, has, blocks.promised,
               blocks.unpromised, sequence->filled);
      HR_CHECK(sequence->parks <= options_.most_parks && (balanced() || sequence->parks == 0),
               "sequence {} was parked {} times", sequence->id, sequence->parks);
    }
  for (const auto& sequence : running_) running.push_back(&sequence->blocks);
  if (balanced()) {
    EndOrder order(limits_.blocks, static_cast<int64_t>(running.size()));
    order.look(running, blocks_.available());
    HR_CHECK(order.safe(), "the {} sequences that run cannot all come to their end", running.size());
  }
  blocks_.check(all);
}

}  // namespace headroom
