// The `loop` variable: the position of a for loop, and the items it has not reached.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <string_view>

#include "jinja/value.h"

namespace headroom::jinja {

// Items are fetched when they are needed, because a loop's condition may look at what its body changed.
struct Loop {
  std::function<std::optional<Value>()> fetch;  // the next item that meets the condition; nothing at the end
  std::deque<Value> ahead;                      // fetched, not yet reached
  int64_t index0 = -1;
  Value before, current;
  std::optional<int64_t> length;
  int nesting = 1;
  Charge charge;

  // Goes to the next item; false at the end.
  bool advance();
  // The next item, fetched but not reached; nullptr at the end.
  const Value* peek();
  int64_t whole_length();
};

// loop.NAME: index, last, previtem ...; cycle as a callable; undefined for other names. Refuses loop.changed.
Value loop_attribute(Budget& budget, const Value& loop, std::string_view name);
// loop.cycle(...).
Value loop_cycle(const Value& loop, const std::vector<Value>& arguments);

}  // namespace headroom::jinja
