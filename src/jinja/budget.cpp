#include "jinja/budget.h"

#include <fmt/format.h>

#include "jinja/problem.h"

namespace headroom::jinja {

void Budget::exceed_steps() const { exceed(fmt::format("more than {} steps", limits_.steps)); }

void Budget::exceed_text() const { exceed(fmt::format("a text of more than {} bytes", limits_.text_bytes)); }

void Budget::exceed_depth() {
  --depth_;
  exceed(fmt::format("nested deeper than {} levels", limits_.depth));
}

void Budget::exceed_live() const { exceed(fmt::format("values of more than {} bytes", limits_.live_bytes)); }

}  // namespace headroom::jinja
