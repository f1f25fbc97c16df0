// A pickle's bytes, read from the front, with errors that name the offset.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <string>
#include <string_view>

namespace headroom {

class PickleInput {
 public:
  PickleInput(std::string_view bytes, const std::string& source) : bytes_(bytes), source_(source) {}

  // Reads the next opcode; errors name its offset until the next call.
  uint8_t opcode();
  // Reads `count` bytes. Throws Error(format) if fewer are left.
  std::string_view take(uint64_t count);
  // Reads an unsigned little-endian number of `width` bytes, at most 8.
  uint64_t number(int width);
  // Reads a line; returns it without its line feed.
  std::string_view line();
  // Throws unless `count` bytes are left.
  void require(uint64_t count) const;

  [[noreturn]] void fail(const std::string& what) const;
  [[noreturn]] void refuse(const std::string& what) const;

 private:
  std::string_view bytes_;
  const std::string& source_;
  size_t at_ = 0, opcode_at_ = 0;
};

// "'S'" or "0x95".
std::string pickle_opcode_name(uint8_t opcode);

}  // namespace headroom
