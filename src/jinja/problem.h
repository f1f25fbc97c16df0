// What stops a template. Thrown inside the engine, which does not know the position; Template turns it into an Error
// with the template's name and line.
#pragma once

#include <string>
#include <string_view>

namespace headroom::jinja {

struct Problem {
  enum class Kind {
    failed,       // the template is wrong, or was given a value it was not made for
    unsupported,  // outside the subset of docs/chat_templates.md
    raised,       // the template called raise_exception
    limit,        // more steps, memory or nesting than allowed
  };
  Kind kind;
  std::string text;
};

[[noreturn]] void fail(std::string what);
// Refuses `name`, a construct of Jinja or Python.
[[noreturn]] void refuse(std::string_view name);
[[noreturn]] void exceed(std::string what);

}  // namespace headroom::jinja
