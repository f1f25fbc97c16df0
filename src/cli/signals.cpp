#include "cli/signals.h"

#include <signal.h>
#include <unistd.h>

namespace headroom {
namespace {

RunControl& control() {
  static RunControl instance;
  return instance;
}

void on_signal(int number) {
  if (number == SIGUSR1) {
    control().save_now = true;
    return;
  }
  if (control().stop_signal.exchange(number) != 0) ::_exit(128 + number);
  static constexpr char kText[] = "\nstopping after this step, then saving (again to stop at once)\n";
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, kText, sizeof kText - 1);
}

}  // namespace

RunControl& install_signal_handlers() {
  control();
  struct sigaction action {};
  action.sa_handler = on_signal;
  action.sa_flags = SA_RESTART;
  for (int number : {SIGINT, SIGTERM, SIGUSR1}) ::sigaction(number, &action, nullptr);
  return control();
}

}  // namespace headroom
