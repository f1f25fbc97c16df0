#include "jinja/arguments.h"

#include <fmt/format.h>

#include <algorithm>

#include "jinja/operators.h"
#include "jinja/problem.h"

namespace headroom::jinja {

std::vector<const Value*> Arguments::bind(std::string_view function, std::initializer_list<std::string_view> names,
                                          size_t required) const {
  if (positional.size() > names.size()) fail(fmt::format("{} with {} arguments", function, positional.size()));
  std::vector<const Value*> bound(names.size(), nullptr);
  for (size_t i = 0; i < positional.size(); ++i) bound[i] = &positional[i];
  for (const auto& [name, value] : named) {
    const auto found = std::find(names.begin(), names.end(), name);
    if (found == names.end() || name.empty()) fail(fmt::format("{} has no argument '{}'", function, name));
    const Value*& slot = bound[static_cast<size_t>(found - names.begin())];
    if (slot != nullptr) fail(fmt::format("{} with the argument '{}' twice", function, name));
    slot = &value;
  }
  for (size_t i = 0; i < required; ++i)
    if (bound[i] == nullptr) fail(fmt::format("{} needs at least {} arguments", function, required));
  return bound;
}

int64_t integer_argument(std::string_view function, const Value* argument, int64_t otherwise) {
  if (argument == nullptr) return otherwise;
  require_defined(*argument);
  if (!argument->is_integer()) fail(fmt::format("{} with a {} for an integer", function, type_name(*argument)));
  return argument->integer();
}

const std::string& text_argument(std::string_view function, const Value* argument) {
  require_defined(*argument);
  if (!argument->is(Type::text)) fail(fmt::format("{} with a {} for a text", function, type_name(*argument)));
  return argument->text();
}

bool flag_argument(const Value* argument, bool otherwise) { return argument == nullptr ? otherwise : truth(*argument); }

}  // namespace headroom::jinja
