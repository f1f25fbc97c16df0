#include "train/event_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <chrono>
#include <cstring>

#include "base/error.h"

namespace headroom {
namespace {

constexpr size_t kHeader = 12, kFooter = 4, kMaxEvent = 960, kMaxTag = 64, kMaxScalars = 8;

uint32_t masked_crc(std::span<const std::byte> bytes) { return std::rotr(crc32c(bytes), 15) + 0xa282ead8u; }

// A protocol buffer message of a few fields, in fixed storage.
class Message {
 public:
  void varint_field(uint32_t field, uint64_t value) {
    varint(field << 3 | 0);
    varint(value);
  }
  void double_field(uint32_t field, double value) {
    varint(field << 3 | 1);
    little_endian(std::bit_cast<uint64_t>(value), 8);
  }
  void float_field(uint32_t field, float value) {
    varint(field << 3 | 5);
    little_endian(std::bit_cast<uint32_t>(value), 4);
  }
  void bytes_field(uint32_t field, std::span<const std::byte> value) {
    varint(field << 3 | 2);
    varint(value.size());
    HR_CHECK(size_ + value.size() <= bytes_.size(), "an event of more than {} bytes", bytes_.size());
    std::copy(value.begin(), value.end(), bytes_.begin() + static_cast<long>(size_));
    size_ += value.size();
  }
  void text_field(uint32_t field, std::string_view value) { bytes_field(field, std::as_bytes(std::span(value))); }
  std::span<const std::byte> bytes() const { return {bytes_.data(), size_}; }

 private:
  void put(uint64_t byte) {
    HR_CHECK(size_ < bytes_.size(), "an event of more than {} bytes", bytes_.size());
    bytes_[size_++] = static_cast<std::byte>(byte);
  }
  void varint(uint64_t value) {
    for (; value >= 0x80; value >>= 7) put((value & 0x7f) | 0x80);
    put(value);
  }
  void little_endian(uint64_t value, int count) {
    for (int i = 0; i < count; ++i) put(value >> (8 * i) & 0xff);
  }

  std::array<std::byte, kMaxEvent> bytes_{};
  size_t size_ = 0;
};

double wall_time() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

Message event_at(int64_t step) {
  Message event;
  event.double_field(1, wall_time());
  if (step > 0) event.varint_field(2, static_cast<uint64_t>(step));
  return event;
}

std::string file_name() {
  char host[65] = {};
  if (::gethostname(host, sizeof host - 1) != 0 || host[0] == '\0') std::strcpy(host, "localhost");
  for (char& c : host)
    if (c == '/') c = '_';
  return fmt::format("events.out.tfevents.{:.0f}.{}.{}", wall_time(), host, ::getpid());
}

}  // namespace

uint32_t crc32c(std::span<const std::byte> bytes) {
  uint32_t crc = 0xffffffffu;
  for (const std::byte byte : bytes) {
    crc ^= static_cast<uint32_t>(byte);
    for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ (crc & 1 ? 0x82f63b78u : 0u);
  }
  return ~crc;
}

EventFile::EventFile(const std::filesystem::path& directory, int64_t first_step) {
  std::error_code status;
  std::filesystem::create_directories(directory, status);
  const std::filesystem::path path = directory / file_name();
  if (!status) descriptor_ = ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (descriptor_ < 0)
    throw Error(ErrorKind::run,
                fmt::format("cannot write {}: {}", path.string(), status ? status.message() : std::strerror(errno)),
                "check --output-dir, or leave out --report-to tensorboard");
  Message version = event_at(0);
  version.text_field(3, "brain.Event:2");
  record(version.bytes());
  if (first_step <= 1) return;
  Message start = event_at(first_step), log;
  log.varint_field(1, 1);
  start.bytes_field(7, log.bytes());
  record(start.bytes());
}

EventFile::~EventFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

void EventFile::scalars(int64_t step, std::span<const Scalar> values) {
  Message summary;
  for (const Scalar& scalar : values.first(std::min(values.size(), kMaxScalars))) {
    Message value;
    value.text_field(1, scalar.tag.substr(0, kMaxTag));
    value.float_field(2, static_cast<float>(scalar.value));
    summary.bytes_field(1, value.bytes());
  }
  Message event = event_at(step);
  event.bytes_field(5, summary.bytes());
  record(event.bytes());
}

void EventFile::record(std::span<const std::byte> event) {
  const auto put = [&](size_t at, uint64_t value, size_t count) {
    for (size_t i = 0; i < count; ++i) frame_[at + i] = static_cast<std::byte>(value >> (8 * i) & 0xff);
  };
  put(0, event.size(), 8);
  put(8, masked_crc({frame_.data(), 8}), 4);
  std::copy(event.begin(), event.end(), frame_.begin() + kHeader);
  put(kHeader + event.size(), masked_crc(event), kFooter);
  const size_t bytes = kHeader + event.size() + kFooter;
  if (::write(descriptor_, frame_.data(), bytes) != static_cast<ssize_t>(bytes))
    throw Error(ErrorKind::run, fmt::format("cannot write the event file: {}", std::strerror(errno)),
                "free disk space, then resume from the last checkpoint");
}

}  // namespace headroom
