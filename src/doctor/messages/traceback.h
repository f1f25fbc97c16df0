// Frames of Python and C++ tracebacks, kept until the message that ends (or starts) the traceback is known.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string_view>
#include <vector>

#include "doctor/messages/message.h"

namespace headroom::doctor {

// The frame in a clean line, if it is one:
//   File "train.py", line 5, in main                          Python
//   File ~/lib/torch/nn/modules/module.py:1501, in Module._call_impl(self, *args)      IPython 8
//   ~/lib/torch/nn/modules/module.py in forward(self, x)                               IPython 7
//   │ /src/train.py:56 in main                             │                           Rich
//   frame #5: torch::autograd::Engine::execute(...) + 0x1a (0x7f in libtorch.so)       C++, line = -1
std::optional<Frame> parse_frame(std::string_view line);

class FrameStore {
 public:
  // A frame at `line` of the log. Rank -1: none.
  void add(int rank, int64_t line, Frame frame);
  // A new traceback begins: frames before it belong to another.
  void begin_traceback(int rank);
  // The source line below the frame added last for this rank.
  void set_code(int rank, std::string_view code);

  // The traceback that ends in a message at `line`; when there is none, the C++ one that begins there. Outermost first
  // as in Python, at most 64. Those frames are not given again to messages further down.
  std::vector<Frame> take(int rank, int64_t line);

 private:
  struct Entry {
    int64_t line = 0;
    int64_t traceback = 0;
    Frame frame;
  };
  struct Rank {
    std::deque<Entry> entries;  // at most kKept
    int64_t traceback = 0;
    int64_t taken_to = 0;  // lines up to here belong to earlier messages
  };
  static constexpr size_t kKept = 320, kRanks = 64, kGiven = 64;
  static constexpr int64_t kReach = 60;  // lines between frames, or to the message: source lines, locals, other ranks

  Rank& rank_of(int rank);
  static std::vector<Frame> ending_at(Rank& rank, int64_t line);
  static std::vector<Frame> starting_at(Rank& rank, int64_t line);

  std::map<int, Rank> ranks_;
};

}  // namespace headroom::doctor
