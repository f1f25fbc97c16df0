// Collects cleaned lines around a suspicious word until the messages in them can be read.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "doctor/messages/message.h"

namespace headroom::doctor {

struct BlockLine {
  std::string text;
  int rank = -1;  // -1: the line has none
  int64_t line = 0;
  bool hit = false;  // contains one of the filter's words
};

// Passes every message that starts in the first `split` lines to `receive`, in order, and removes the text of those
// messages from the later lines. Lines of different ranks are read separately; a line without a rank belongs to the
// line before it. Thread-safe.
void read_messages(std::vector<BlockLine>& lines, size_t split, const std::function<void(Message)>& receive);

}  // namespace headroom::doctor
