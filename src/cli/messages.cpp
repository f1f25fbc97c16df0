#include "cli/messages.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>

namespace headroom {

void print_error(std::string_view message, std::string_view remedy) {
  const bool color = ::isatty(STDERR_FILENO);
  fmt::print(stderr, "{}error:{} {}\n", color ? "\x1b[1;31m" : "", color ? "\x1b[0m" : "", message);
  if (!remedy.empty()) fmt::print(stderr, "  {}\n", remedy);
}

void print_note(std::string_view text) { fmt::print(stderr, "{}\n", text); }

}  // namespace headroom
