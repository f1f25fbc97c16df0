// headroom-doctor: doctor alone, statically linked, for machines without the rest of headroom.
#include "cli/doctor_command.h"

int main(int argc, char** argv) {
  std::vector<std::string> arguments(argv + 1, argv + argc);
  const bool named = !arguments.empty() && (arguments[0] == "doctor" || arguments[0] == "--version");
  if (!named) arguments.insert(arguments.begin(), "doctor");
  return headroom::run_commands("headroom-doctor", "what an out-of-memory error means, and what would fit",
                                {headroom::make_doctor_command({})}, std::move(arguments));
}
