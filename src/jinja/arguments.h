// The arguments of a call, a filter or a test.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "jinja/value.h"

namespace headroom::jinja {

struct Arguments {
  std::vector<Value> positional;
  std::vector<std::pair<std::string, Value>> named;

  // The values of `names` in their order, nullptr for those not given. Throws Problem if one of the first `required` is
  // missing, and for arguments that `function` does not have. An argument named "" is positional only.
  std::vector<const Value*> bind(std::string_view function, std::initializer_list<std::string_view> names,
                                 size_t required = 0) const;
};

// The argument as an integer, a text or a flag; `otherwise` if it is not given. The first two throw Problem for another
// type; a text must be given.
int64_t integer_argument(std::string_view function, const Value* argument, int64_t otherwise);
const std::string& text_argument(std::string_view function, const Value* argument);
bool flag_argument(const Value* argument, bool otherwise);

}  // namespace headroom::jinja
