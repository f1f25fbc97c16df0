// What a model says that may call tools by itself, told apart as it grows: text, and the calls in it.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "serve/growing_call.h"
#include "serve/tool_calls.h"

namespace headroom {

// One or the other.
struct FoundPart {
  std::string text;
  std::optional<ToolCall> call;  // or a part of it
};

// Gives on what is certain. A call is one as soon as it has named a tool and its arguments begin as an object (the
// forms are those of written_calls()); what then follows is its arguments, whether they are well-formed or not. White
// space around calls is left out, and so is the rest of the object behind the arguments.
class CallFinder {
 public:
  // `tools` outlive it. `id`: what the calls' ids begin with.
  CallFinder(const OrderedJson& tools, std::string id) : tools_(tools), id_(std::move(id)) {}

  std::vector<FoundPart> push(std::string_view text);
  // The rest, once there is no more text.
  std::vector<FoundPart> finish();
  // There were calls, and the last has come to its end.
  bool called() const { return calls_ > 0 && place_ != Place::arguments; }

 private:
  enum class Place : uint8_t { words, head, arguments, behind };
  static constexpr size_t kMostHead = 2048;  // bytes before the arguments: what has more is text

  // Each gives whether the text that is held may tell more.
  bool read_words();
  bool read_head();
  bool read_arguments();
  bool read_behind();
  void begin_head(size_t object, bool marked);
  void end_head();
  void add_text(size_t bytes);
  void add_call(std::optional<ToolCall> call);

  const OrderedJson& tools_;
  const std::string id_;
  std::vector<FoundPart> found_;  // of the push under way
  std::string held_;              // the text that is not told yet
  Place place_ = Place::words;
  bool said_ = false;         // words, or a call: a bare object is text from then on
  bool behind_call_ = false;  // no words since the last
  bool marked_ = false;       // the call under way
  size_t object_ = 0;         // where in the held text it begins
  size_t read_ = 0;           // how much of it the call has read
  std::optional<GrowingCall> call_;
  int64_t calls_ = 0;
};

}  // namespace headroom
