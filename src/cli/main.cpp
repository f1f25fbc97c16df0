#include "cli/command.h"
#include "cli/process.h"

int main(int argc, char** argv) {
  headroom::prepare_process();
  return headroom::run_command_line({argv + 1, argv + argc});
}
