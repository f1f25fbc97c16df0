#include "formats/pickle_input.h"

#include "base/error.h"

namespace headroom {

uint8_t PickleInput::opcode() {
  opcode_at_ = at_;
  if (at_ == bytes_.size()) fail("the file ends before the pickle does");
  return static_cast<uint8_t>(bytes_[at_++]);
}

void PickleInput::require(uint64_t count) const {
  if (count <= bytes_.size() - at_) return;
  fail(fmt::format("{} says that {} bytes follow, {} are left",
                   pickle_opcode_name(static_cast<uint8_t>(bytes_[opcode_at_])), count, bytes_.size() - at_));
}

std::string_view PickleInput::take(uint64_t count) {
  require(count);
  const std::string_view taken = bytes_.substr(at_, count);
  at_ += count;
  return taken;
}

uint64_t PickleInput::number(int width) {
  const std::string_view taken = take(static_cast<uint64_t>(width));
  uint64_t value = 0;
  for (int i = width; i-- > 0;) value = value << 8 | static_cast<uint8_t>(taken[static_cast<size_t>(i)]);
  return value;
}

std::string_view PickleInput::line() {
  const size_t end = bytes_.find('\n', at_);
  if (end == std::string_view::npos) fail("the file ends within a line");
  const std::string_view taken = bytes_.substr(at_, end - at_);
  at_ = end + 1;
  return taken;
}

void PickleInput::fail(const std::string& what) const {
  throw Error(
      ErrorKind::format, fmt::format("{}: byte {}: {}", source_, opcode_at_, what),
      "write the snapshot again with torch.cuda.memory._dump_snapshot; a killed job or a full disk cuts it short");
}

void PickleInput::refuse(const std::string& what) const {
  throw Error(
      ErrorKind::format, fmt::format("{}: byte {}: the pickle {}", source_, opcode_at_, what),
      "bring a file that torch.cuda.memory._dump_snapshot wrote: it holds plain values only; nothing of this one "
      "was executed");
}

std::string pickle_opcode_name(uint8_t opcode) {
  return opcode > ' ' && opcode < 0x7f ? fmt::format("opcode '{}'", static_cast<char>(opcode))
                                       : fmt::format("opcode 0x{:02x}", opcode);
}

}  // namespace headroom
