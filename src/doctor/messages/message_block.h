// The lines around a suspicious word, cleaned, until enough of them are there to read the messages in them.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "doctor/messages/message.h"

namespace headroom::doctor {

struct BlockLine {
  std::string text;
  int rank = -1;  // -1: the line names none
  int64_t line = 0;
  bool hit = false;  // holds one of the filter's words
};

// Gives every message that starts in the first `split` lines to `receive`, in the order of lines, and cuts off the
// later lines what those messages reach into. Lines of different ranks are read apart; a line without a rank belongs to
// the one before it. Thread-safe.
void read_messages(std::vector<BlockLine>& lines, size_t split, const std::function<void(Message)>& receive);

}  // namespace headroom::doctor
