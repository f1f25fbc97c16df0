#include <fmt/format.h>

#include <unistd.h>

#include "arguments/profile_options.h"
#include "cli/command.h"
#include "cli/messages.h"
#include "engine/measure_profile.h"

namespace headroom {
namespace {

int run_profile(const ProfileOptions& options) {
  const bool terminal = ::isatty(STDERR_FILENO);
  bool line_open = false;
  ProfileEvents events;
  events.progress = [&](double share) {
    if (!terminal) return;
    write_stderr(fmt::format("\rmeasuring {:3.0f}%", share * 100));
    line_open = true;
  };
  events.note = [&](const std::string& text) {
    if (std::exchange(line_open, false)) write_stderr("\n");
    print_note(text);
  };
  measure_profile(options, events);
  return 0;
}

}  // namespace

Command profile_command() {
  return {"profile", "measure this machine, or one of its GPUs, and write a profile (30 s at most)", [](CLI::App& app) {
            auto options = std::make_shared<ProfileOptions>();
            add_profile_options(app, *options);
            return [options] { return run_profile(*options); };
          }};
}

}  // namespace headroom
