#include "jinja/loop.h"

#include <fmt/format.h>

#include "jinja/problem.h"

namespace headroom::jinja {

bool Loop::advance() {
  if (peek() == nullptr) return false;
  before = std::move(current);
  current = std::move(ahead.front());
  ahead.pop_front();
  ++index0;
  return true;
}

const Value* Loop::peek() {
  if (ahead.empty()) {
    std::optional<Value> next = fetch();
    if (!next) return nullptr;
    ahead.push_back(std::move(*next));
  }
  return &ahead.front();
}

int64_t Loop::whole_length() {
  if (!length) {
    while (std::optional<Value> next = fetch()) {
      charge.add(2 * static_cast<int64_t>(sizeof(Value)));
      ahead.push_back(std::move(*next));
    }
    length = index0 + 1 + static_cast<int64_t>(ahead.size());
  }
  return *length;
}

Value loop_attribute(Budget& budget, const Value& value, std::string_view name) {
  Loop& loop = value.loop();
  if (name == "index") return Value(loop.index0 + 1);
  if (name == "index0") return Value(loop.index0);
  if (name == "first") return Value(loop.index0 == 0);
  if (name == "last") return Value(loop.peek() == nullptr);
  if (name == "length") return Value(loop.whole_length());
  if (name == "revindex") return Value(loop.whole_length() - loop.index0);
  if (name == "revindex0") return Value(loop.whole_length() - loop.index0 - 1);
  if (name == "depth") return Value(int64_t{1});
  if (name == "depth0") return Value(int64_t{0});
  if (name == "previtem") return loop.index0 == 0 ? make_undefined(budget, "there is no previous item") : loop.before;
  if (name == "nextitem") {
    const Value* next = loop.peek();
    return next == nullptr ? make_undefined(budget, "there is no next item") : *next;
  }
  if (name == "changed") refuse("loop.changed");
  if (name == "cycle") {
    auto method = std::make_shared<Callable>();
    method->charge = Charge(budget, sizeof(Callable) + 32);
    method->name = std::string(name);
    method->self = value;
    method->is_method = true;
    return Value(std::shared_ptr<const Callable>(std::move(method)));
  }
  return make_undefined(budget, fmt::format("'loop' has no attribute '{}'", name));
}

Value loop_cycle(const Value& loop, const std::vector<Value>& arguments) {
  if (arguments.empty()) fail("loop.cycle() without items");
  return arguments[static_cast<size_t>(loop.loop().index0) % arguments.size()];
}

}  // namespace headroom::jinja
