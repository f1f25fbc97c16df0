#include "formats/pickle_document.h"

#include <algorithm>

#include "base/mixed_hash.h"

namespace headroom {
namespace {

// Longer lists are not compared with earlier ones.
constexpr size_t kLongestShared = 4096;
constexpr size_t kMostShared = size_t{1} << 16;
constexpr size_t kRememberedKeys = 1024;

}  // namespace

const char* pickle_kind_name(PickleKind kind) {
  static constexpr const char* kNames[] = {"None",     "a boolean", "an integer",   "a big integer",
                                           "a number", "a text",    "bytes",        "a callable",
                                           "a list",   "a tuple",   "a dictionary", "a set"};
  return kNames[static_cast<size_t>(kind)];
}

PickleValue PickleDocument::Cursor::key() const {
  if (!keyed_) return PickleValue();
  return document_->cells_[document_->keys_[run_->keys].first + at_];
}

void PickleDocument::Cursor::next() {
  ++at_;
  skip_empty_runs();
}

void PickleDocument::Cursor::skip_empty_runs() {
  while (run_ != nullptr && at_ >= run_->count) {
    run_ = run_->next == 0 ? nullptr : &document_->runs_[run_->next - 1];
    at_ = 0;
  }
}

std::optional<bool> PickleDocument::boolean(PickleValue value) const {
  if (!value.is(PickleKind::boolean)) return std::nullopt;
  return value.small_integer() != 0;
}

std::optional<int64_t> PickleDocument::integer(PickleValue value) const {
  if (value.is_wide()) return integers_[value.index()];
  if (value.is(PickleKind::integer) || value.is(PickleKind::boolean)) return value.small_integer();
  return std::nullopt;
}

std::optional<double> PickleDocument::real(PickleValue value) const {
  if (value.is(PickleKind::real)) return reals_[value.index()];
  if (const auto whole = integer(value)) return static_cast<double>(*whole);
  return std::nullopt;
}

std::string_view PickleDocument::text(PickleValue value) const {
  switch (value.kind()) {
    case PickleKind::text:
    case PickleKind::bytes:
    case PickleKind::callable:
    case PickleKind::big_integer:
      return texts_[value.index()];
    default:
      return {};
  }
}

size_t PickleDocument::size(PickleValue value) const {
  if (!value.is_container()) return text(value).size();
  size_t count = 0;
  for (const PickleRun* run = &containers_[value.index()];; run = &runs_[run->next - 1]) {
    count += run->count;
    if (run->next == 0) return count;
  }
}

PickleDocument::Cursor PickleDocument::members(PickleValue value) const {
  Cursor cursor;
  cursor.document_ = this;
  if (value.is_container()) cursor.run_ = &containers_[value.index()];
  cursor.keyed_ = value.is(PickleKind::dict);
  cursor.skip_empty_runs();
  return cursor;
}

std::optional<PickleValue> PickleDocument::text_value(std::string_view text) const {
  const auto number = text_numbers_.find(text);
  if (!number) return std::nullopt;
  return PickleValue(PickleKind::text, *number);
}

std::optional<PickleValue> PickleDocument::find(PickleValue dict, PickleValue key) const {
  std::optional<PickleValue> found;
  if (!dict.is(PickleKind::dict)) return found;
  for (const PickleRun* run = &containers_[dict.index()];; run = &runs_[run->next - 1]) {
    const uint64_t keys = run->count == 0 ? 0 : keys_[run->keys].first;
    for (uint32_t i = 0; i < run->count; ++i)
      if (cells_[keys + i] == key) found = cells_[run->first + i];
    if (run->next == 0) return found;
  }
}

PickleValue PickleDocument::make_integer(int64_t value) {
  constexpr int64_t kLimit = int64_t{1} << 59;
  if (value >= -kLimit && value < kLimit) return PickleValue(PickleKind::integer, static_cast<uint64_t>(value));
  integers_.push(value);
  return PickleValue(PickleValue::kWide, integers_.size() - 1);
}

PickleValue PickleDocument::make_real(double value) {
  reals_.push(value);
  return PickleValue(PickleKind::real, reals_.size() - 1);
}

PickleValue PickleDocument::make_text(PickleKind kind, std::string_view text, bool copied) {
  if (const auto number = text_numbers_.find(text)) return PickleValue(kind, *number);
  if (copied) text = copies_.emplace_back(text);
  texts_.push(text);
  text_numbers_.add(text);
  return PickleValue(kind, texts_.size() - 1);
}

PickleValue PickleDocument::make_container(PickleKind kind) {
  containers_.push(PickleRun());
  return PickleValue(kind, containers_.size() - 1);
}

void PickleDocument::append(PickleValue container, const PickleValue* members, size_t count) {
  if (count == 0) return;
  PickleRun& run = add_run(container);
  run.first = count <= kLongestShared ? shared_cells(members, count) : store_cells(members, count, 1);
  run.count = static_cast<uint32_t>(count);
}

void PickleDocument::append_entries(PickleValue dict, const PickleValue* keys_and_values, size_t entries) {
  if (entries == 0) return;
  PickleRun& run = add_run(dict);
  run.keys = shared_keys(keys_and_values, entries);
  run.first = store_cells(keys_and_values + 1, entries, 2);
  run.count = static_cast<uint32_t>(entries);
}

PickleRun& PickleDocument::add_run(PickleValue container) {
  PickleRun& first = containers_[container.index()];
  if (first.count == 0) return first;
  runs_.push(PickleRun());
  const auto number = static_cast<uint32_t>(runs_.size());
  (first.last == 0 ? first : runs_[first.last - 1]).next = number;
  first.last = number;
  return runs_[number - 1];
}

uint64_t PickleDocument::store_cells(const PickleValue* values, size_t count, size_t stride) {
  const uint64_t first = cells_.size();
  for (size_t i = 0; i < count; ++i) cells_.push(values[i * stride]);
  return first;
}

bool PickleDocument::cells_equal(uint64_t first, const PickleValue* values, size_t count, size_t stride) const {
  for (size_t i = 0; i < count; ++i)
    if (cells_[first + i] != values[i * stride]) return false;
  return true;
}

uint64_t PickleDocument::shared_cells(const PickleValue* members, size_t count) {
  const size_t wanted = std::min(kMostShared, cells_.size() / 4);
  if (last_shared_.size() < wanted || last_shared_.empty())
    last_shared_.assign(std::max<size_t>(64, last_shared_.size() * 4), SharedCells());
  uint64_t hash = count;
  for (size_t i = 0; i < count; ++i) hash = mixed_hash(hash, members[i].bits_);
  SharedCells& slot = last_shared_[hash % last_shared_.size()];
  if (slot.count != count || slot.hash != hash || !cells_equal(slot.first, members, count, 1))
    slot = SharedCells{hash, store_cells(members, count, 1), static_cast<uint32_t>(count)};
  return slot.first;
}

uint32_t PickleDocument::shared_keys(const PickleValue* keys_and_values, size_t entries) {
  uint64_t hash = entries;
  for (size_t i = 0; i < entries; ++i) hash = mixed_hash(hash, keys_and_values[2 * i].bits_);
  if (last_keys_.empty()) last_keys_.resize(kRememberedKeys);
  uint32_t& slot = last_keys_[hash % kRememberedKeys];
  if (slot != 0) {
    const Keys& keys = keys_[slot - 1];
    if (keys.count == entries && cells_equal(keys.first, keys_and_values, entries, 2)) return slot - 1;
  }
  keys_.push(Keys{store_cells(keys_and_values, entries, 2), static_cast<uint32_t>(entries)});
  slot = static_cast<uint32_t>(keys_.size());
  return slot - 1;
}

}  // namespace headroom
