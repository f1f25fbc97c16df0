// TensorBoard event files: `train --report-to tensorboard` writes O/runs/events.out.tfevents.TIME.HOST.PID.
//
// A file is a sequence of records, each: length of the data (u64, little-endian), masked CRC-32C of these 8 bytes
// (u32), the data, masked CRC-32C of the data (u32); masked is ((crc >> 15) | (crc << 17)) + 0xa282ead8
// (tensorflow/core/lib/io/record_writer.h, tensorflow/core/lib/hash/crc32c.h). The data is a protocol buffer `Event`: 1
// wall_time double, 2 step int64, 3 file_version string ("brain.Event:2", the first record), 5 summary, 7 session_log;
// `Summary`: 1 value, repeated; `Summary.Value`: 1 tag string, 2 simple_value float; `SessionLog`: 1 status, 1 = START
// (tensorflow/core/util/event.proto, tensorflow/core/framework/summary.proto). A START at step N tells TensorBoard to
// forget what older files of the folder have for step N and later.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string_view>

namespace headroom {

// CRC-32C (Castagnoli; reflected polynomial 0x82f63b78).
uint32_t crc32c(std::span<const std::byte> bytes);

struct Scalar {
  std::string_view tag;  // "train/loss"; at most 64 bytes
  double value = 0;
};

// Appends records without heap calls.
class EventFile {
 public:
  // Creates a file in `directory`, and the directory; the run starts or continues at `first_step`. Throws Error(run).
  EventFile(const std::filesystem::path& directory, int64_t first_step);
  EventFile(const EventFile&) = delete;
  EventFile& operator=(const EventFile&) = delete;
  ~EventFile();

  // One event with at most 8 scalars. Throws Error(run) on I/O errors.
  void scalars(int64_t step, std::span<const Scalar> values);

 private:
  void record(std::span<const std::byte> event);

  int descriptor_ = -1;
  std::array<std::byte, 1024> frame_{};
};

}  // namespace headroom
