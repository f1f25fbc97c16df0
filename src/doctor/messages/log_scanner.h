// Reads a log of any size once, in pieces, with bounded memory, and collects what it says about memory.
//
//   LogScanner scanner;
//   while (read(piece)) scanner.feed(piece);
//   LogReport report = scanner.finish();
//
// A fast search for words that occur in every known message passes over ordinary lines; only around its hits are lines
// cleaned and matched. At most about 8 MiB are held, whatever the log.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "doctor/messages/growth.h"
#include "doctor/messages/message.h"
#include "doctor/messages/resources.h"

namespace headroom::doctor {

struct LogReport {
  std::vector<Message> messages;  // in the order of the log; at most LogScanner::kMessages
  int64_t messages_dropped = 0;   // distinct ones beyond that
  int64_t lines_unread = 0;       // suspicious lines skipped: ever fewer of a log that repeats itself are read
  Resources resources;            // Slurm, sacct, seff, nvidia-smi and server facts near the errors
  Growth growth;                  // of memory over time, from samples in the log
  std::string excerpt;            // the log's first and last LogScanner::kExcerpt bytes
  int64_t lines = 0;
  int64_t bytes = 0;
};

class LogScanner {
 public:
  static constexpr size_t kMessages = 256;
  static constexpr size_t kExcerpt = size_t{64} << 10;

  LogScanner();
  ~LogScanner();
  LogScanner(LogScanner&&) noexcept;
  LogScanner& operator=(LogScanner&&) noexcept;

  void feed(std::string_view piece);
  // Call once, after the last piece.
  LogReport finish();

 private:
  class State;
  std::unique_ptr<State> state_;
};

// Scans a text in memory.
LogReport scan_log(std::string_view text);

}  // namespace headroom::doctor
