#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <memory>

#include "base/error.h"
#include "cli/command.h"
#include "cli/terminal.h"
#include "report/live_view.h"

namespace headroom {
namespace {

volatile std::sig_atomic_t interrupted = 0;

void on_watch_signal(int number) { interrupted = number; }

void install_handlers() {
  struct sigaction action = {};
  action.sa_handler = on_watch_signal;  // without SA_RESTART: a pause ends at once
  ::sigaction(SIGINT, &action, nullptr);
  ::sigaction(SIGTERM, &action, nullptr);
}

// On a terminal: the last screen is painted over in place. Elsewhere: a line whenever something changed.
class Output {
 public:
  void show(const report::LiveView& view) {
    if (!terminal_) {
      const std::string line = view.line();
      if (line == last_) return;
      last_ = line;
      fmt::print("{}\n", line);
    } else {
      std::string screen = view.screen(terminal_columns(STDOUT_FILENO) - 1);
      std::string text = lines_ > 0 ? fmt::format("\x1b[{}A", lines_) : "";
      lines_ = std::count(screen.begin(), screen.end(), '\n');
      for (size_t at = 0; at < screen.size();) {
        const size_t end = screen.find('\n', at);
        text += screen.substr(at, end - at) + "\x1b[K\n";
        at = end + 1;
      }
      fmt::print("{}\x1b[J", text);
    }
    std::fflush(stdout);
  }

 private:
  bool terminal_ = ::isatty(STDOUT_FILENO) == 1;
  long lines_ = 0;
  std::string last_;
};

struct WatchArguments {
  std::string directory;
  bool once = false;
};

int run_watch(const WatchArguments& arguments) {
  std::error_code status;
  if (std::filesystem::exists(arguments.directory, status) &&
      !std::filesystem::is_directory(arguments.directory, status))
    throw Error(ErrorKind::usage, fmt::format("{} is not a directory", arguments.directory),
                "give the --output-dir of a run");
  install_handlers();
  report::LiveView view(arguments.directory);
  Output output;
  for (bool first = true; !interrupted; first = false) {
    if (view.poll() || first) output.show(view);
    if (arguments.once || view.over()) break;
    ::usleep(500'000);
  }
  if (interrupted) return 128 + interrupted;
  return view.state() == report::RunState::died ? 1 : 0;
}

}  // namespace

Command watch_command() {
  return {
      "watch", "follow a run from another terminal: budget, plan, memory in use, loss, time left", [](CLI::App& app) {
        auto arguments = std::make_shared<WatchArguments>();
        app.add_option("directory", arguments->directory, "the --output-dir of a run: past, current or not yet started")
            ->required()
            ->type_name("DIR");
        app.add_flag("--once", arguments->once, "print the state once and exit");
        return [arguments] { return run_watch(*arguments); };
      }};
}

}  // namespace headroom
