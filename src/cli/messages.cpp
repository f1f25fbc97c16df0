#include "cli/messages.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <iterator>

namespace headroom {

void write_stderr(std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), stderr);
  std::fflush(stderr);
}

void print_error(std::string_view message, std::string_view remedy) {
  std::fflush(stdout);
  const bool color = ::isatty(STDERR_FILENO);
  fmt::memory_buffer text;  // short texts need no heap, which may be exhausted
  fmt::format_to(std::back_inserter(text), "{}error:{} {}\n", color ? "\x1b[1;31m" : "", color ? "\x1b[0m" : "",
                 message);
  if (!remedy.empty()) fmt::format_to(std::back_inserter(text), "  {}\n", remedy);
  write_stderr({text.data(), text.size()});
}

void print_note(std::string_view text) {
  write_stderr(text);
  write_stderr("\n");
}

void print_remark(std::string_view text) {
  if (!text.empty()) print_note(text);
}

}  // namespace headroom
