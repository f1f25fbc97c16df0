// Separates text from tool calls in the growing output of a model that may call tools by itself.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "serve/growing_call.h"
#include "serve/tool_calls.h"

namespace headroom {

// Text or a call.
struct FoundPart {
  std::string text;
  std::optional<ToolCall> call;  // or a part of one
};

// Emits what is certain. An object counts as a call as soon as it has named a tool and its arguments start as an object
// (the forms are those of written_calls()). What follows is its arguments, well-formed or not. Drops white space around
// calls, and the rest of the object after the arguments.
class CallFinder {
 public:
  // `tools` must outlive it. `id`: prefix of the calls' ids.
  CallFinder(const OrderedJson& tools, std::string id) : tools_(tools), id_(std::move(id)) {}

  std::vector<FoundPart> push(std::string_view text);
  // The rest, at the end of the text.
  std::vector<FoundPart> finish();
  // Whether there were calls and the last one is complete.
  bool called() const { return calls_ > 0 && place_ != Place::arguments; }

 private:
  enum class Place : uint8_t { words, head, arguments, behind };
  static constexpr size_t kMostHead = 2048;  // bytes before the arguments; with more it is text

  // Each returns whether the held text may yield more.
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
  std::vector<FoundPart> found_;  // found in the current push
  std::string held_;              // text not emitted yet
  Place place_ = Place::words;
  bool said_ = false;         // words or a call were found: from then on, an object without marks is text
  bool behind_call_ = false;  // no words since the last call
  bool marked_ = false;       // whether the current call has marks
  size_t object_ = 0;         // offset of its object in the held text
  size_t read_ = 0;           // end of the held text that the call has read
  std::optional<GrowingCall> call_;
  int64_t calls_ = 0;
};

}  // namespace headroom
