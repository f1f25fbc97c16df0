// Errors for two audiences: what a user can cause (headroom::Error, with values and a remedy) and our own broken
// invariants (HR_CHECK -> InternalError). Nothing below cli/ prints or aborts; cli/ maps ErrorKind to an exit code.
#pragma once

#include <fmt/format.h>

#include <stdexcept>
#include <string>
#include <utility>

namespace headroom {

enum class ErrorKind {
  usage,         // wrong option, missing file, value out of range: exit 2
  format,        // malformed content of a file: exit 2
  does_not_fit,  // the budget is too small, or larger than the machine: exit 3
  run,           // failed while running (I/O error, device lost, NaN stop): exit 1
};

// A message that a user can act on. `what()` is lower case, without a full stop, and includes the values; `remedy()`
// says what to do.
class Error : public std::runtime_error {
 public:
  Error(ErrorKind kind, std::string message, std::string remedy = {})
      : std::runtime_error(std::move(message)), kind_(kind), remedy_(std::move(remedy)) {}
  ErrorKind kind() const { return kind_; }
  const std::string& remedy() const { return remedy_; }

 private:
  ErrorKind kind_;
  std::string remedy_;
};

// A broken invariant of headroom itself: never caused by user input.
class InternalError : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

[[noreturn]] void throw_internal(const char* file, int line, const char* condition, const std::string& message);

#define HR_CHECK(condition, ...)                                                                            \
  do {                                                                                                      \
    if (!(condition)) ::headroom::throw_internal(__FILE__, __LINE__, #condition, fmt::format(__VA_ARGS__)); \
  } while (false)

}  // namespace headroom
