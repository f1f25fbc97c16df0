// Chat templates: a documented subset of Jinja (docs/chat_templates.md) with bounds on time and memory.
#pragma once

#include <cstdint>
#include <ctime>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "jinja/budget.h"
#include "jinja/value.h"

namespace headroom::jinja {

// A text, and the byte ranges [first, second) that {% generation %} blocks wrote, in their order.
struct Rendered {
  std::string text;
  std::vector<std::pair<size_t, size_t>> generations;
};

// Error(format) of a template that called raise_exception: it refuses its input.
class Refusal : public Error {
 public:
  Refusal(std::string message, std::string said)
      : Error(ErrorKind::format, std::move(message), "correct the conversation"), said_(std::move(said)) {}
  // What the template said.
  const std::string& said() const { return said_; }

 private:
  std::string said_;
};

// Immutable; copies share their data. All members are const and may be called from several threads.
class Template {
 public:
  // `source` names the template in errors. Throws Error(format) "SOURCE:LINE: ..." for what is not Jinja, is outside
  // the subset (then named), or is larger than limits.template_bytes. `utf8` is valid UTF-8.
  static Template parse(std::string_view utf8, std::string source, const Limits& limits = {});

  // Renders with these variables. `now` is what strftime_now() formats. `budget` bounds the rendering and is used up by
  // it; it may be the budget of `variables`, and must outlive them.
  // Throws Refusal for raise_exception, else Error(format) "SOURCE:LINE: ...".
  Rendered render(const Dict& variables, const std::tm& now, Budget& budget) const;

  // Whether there is a {% generation %} block anywhere.
  bool marks_generations() const;
  const std::string& source() const;

 private:
  struct Data;
  explicit Template(std::shared_ptr<const Data> data) : data_(std::move(data)) {}
  std::shared_ptr<const Data> data_;
};

}  // namespace headroom::jinja
