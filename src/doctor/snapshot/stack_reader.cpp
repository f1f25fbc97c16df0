#include "doctor/snapshot/stack_reader.h"

#include "base/mixed_hash.h"
#include "doctor/snapshot/clean_text.h"

namespace headroom::doctor {
namespace {

uint64_t text_hash(std::string_view text) {
  uint64_t hash = text.size();
  for (const char c : text) hash = mixed_hash(hash, static_cast<uint8_t>(c));
  return hash;
}

// A frame has three entries, or seven with those that torch.fx adds.
constexpr int kMostFrameEntries = 32;

bool has_at_most(PickleDocument::Cursor cursor, int limit) {
  for (int i = 0; i < limit && !cursor.done(); ++i) cursor.next();
  return cursor.done();
}

}  // namespace

StackReader::StackReader(const PickleDocument& document)
    : document_(document),
      filename_(document.text_value("filename")),
      name_(document.text_value("name")),
      line_(document.text_value("line")),
      known_(document.container_count(), 0) {}

uint32_t StackReader::frame(PickleValue frame) {
  if (!frame.is(PickleKind::dict) || !name_ || !filename_) return 0;
  uint32_t& known = known_[document_.container_number(frame)];
  if (known != 0) return known;
  if (!has_at_most(document_.members(frame), kMostFrameEntries)) return 0;
  const auto file = document_.find(frame, *filename_), function = document_.find(frame, *name_);
  if (!file || !function) return 0;
  StackFrame read;
  read.file = clean_text(document_.text(*file));
  read.function = clean_text(document_.text(*function));
  if (line_)
    if (const auto line = document_.find(frame, *line_)) read.line = document_.integer(*line).value_or(0);
  const uint64_t hash =
      mixed_hash(mixed_hash(text_hash(read.file), text_hash(read.function)), static_cast<uint64_t>(read.line));
  const auto [at, added] = frames_by_hash_.emplace(hash, static_cast<uint32_t>(table_.frames.size()));
  if (added) table_.frames.push_back(std::move(read));
  return known = at->second + 1;
}

uint32_t StackReader::stack(PickleValue frames) {
  if (!frames.is(PickleKind::list) && !frames.is(PickleKind::tuple)) return StackTable::kNone;
  uint32_t& known = known_[document_.container_number(frames)];
  if (known != 0) return known - 1;
  std::vector<uint32_t> read;
  uint64_t hash = 1;
  for (auto cursor = document_.members(frames); !cursor.done(); cursor.next()) {
    const uint32_t number = frame(cursor.value());
    if (number == 0) continue;
    read.push_back(number - 1);
    hash = mixed_hash(hash, number);
  }
  uint32_t number = StackTable::kNone;
  if (!read.empty()) {
    const auto [at, added] = stacks_by_hash_.emplace(hash, static_cast<uint32_t>(table_.stacks.size()));
    if (added) table_.stacks.push_back(std::move(read));
    number = at->second;
  }
  known_[document_.container_number(frames)] = number + 1;
  return number;
}

}  // namespace headroom::doctor
