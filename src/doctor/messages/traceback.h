// Frames of Python and C++ tracebacks, kept until the message at the traceback's end (or start) is known.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string_view>
#include <vector>

#include "doctor/messages/message.h"

namespace headroom::doctor {

// Parses a clean line as a frame:
//   File "train.py", line 5, in main                          Python
//   File ~/lib/torch/nn/modules/module.py:1501, in Module._call_impl(self, *args)      IPython 8
//   ~/lib/torch/nn/modules/module.py in forward(self, x)                               IPython 7
//   │ /src/train.py:56 in main                             │                           Rich
//   frame #5: torch::autograd::Engine::execute(...) + 0x1a (0x7f in libtorch.so)       C++, line = -1
std::optional<Frame> parse_frame(std::string_view line);

class FrameStore {
 public:
  // Adds a frame at `line` of the log. Rank -1: none.
  void add(int rank, int64_t line, Frame frame);
  // A new traceback begins: earlier frames belong to another one.
  void begin_traceback(int rank);
  // Sets the source line of the frame that was added last for this rank.
  void set_code(int rank, std::string_view code);

  // The traceback that ends in a message at `line`, or else the C++ traceback that begins there. At most 64 frames,
  // outermost first as in Python. Later messages do not get these frames again.
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
    int64_t taken_to = 0;  // frames up to this line belong to earlier messages
  };
  static constexpr size_t kKept = 320, kRanks = 64, kGiven = 64;
  static constexpr int64_t kReach = 60;  // lines between frames or to the message: source lines, locals, other ranks

  Rank& rank_of(int rank);
  static std::vector<Frame> ending_at(Rank& rank, int64_t line);
  static std::vector<Frame> starting_at(Rank& rank, int64_t line);

  std::map<int, Rank> ranks_;
};

}  // namespace headroom::doctor
