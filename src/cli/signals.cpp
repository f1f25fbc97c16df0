#include "cli/signals.h"

#include <signal.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cstring>

namespace headroom {
namespace {

RunControl& control() {
  static RunControl instance;
  return instance;
}

constexpr int64_t kSameRequestNanoseconds = 1'000'000'000;

int64_t nanoseconds() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

// Printed at the first request; lives as long as the program.
std::atomic<const char*> stop_text{nullptr};

// Set by the first request to stop. Lock-free, so that a handler may use it.
std::atomic<int64_t> stop_requested_at{0};

void on_signal(int number) {
  if (number == SIGUSR1) {
    control().save_now = true;
    return;
  }
  int64_t first = 0;
  const int64_t now = nanoseconds();
  if (!stop_requested_at.compare_exchange_strong(first, now)) {
    if (now - first > kSameRequestNanoseconds) ::_exit(128 + number);
    return;
  }
  control().stop_signal = number;
  const char* const text = stop_text;
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, text, std::strlen(text));
}

std::atomic<bool>& reload_asked() {
  static std::atomic<bool> instance{false};
  return instance;
}

}  // namespace

std::atomic<bool>& install_reload_handler() {
  reload_asked() = false;
  struct sigaction action {};
  action.sa_handler = [](int) { reload_asked() = true; };
  action.sa_flags = SA_RESTART;
  ::sigaction(SIGHUP, &action, nullptr);
  return reload_asked();
}

RunControl& install_signal_handlers(const char* text) {
  control();
  stop_text = text;
  struct sigaction action {};
  action.sa_handler = on_signal;
  action.sa_flags = SA_RESTART;
  for (int number : {SIGINT, SIGTERM, SIGUSR1}) ::sigaction(number, &action, nullptr);
  return control();
}

}  // namespace headroom
