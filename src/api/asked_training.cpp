#include "api/asked_training.h"

#include "arguments/shown_command.h"
#include "engine/device_facts.h"

namespace headroom::api {

AskedTraining::AskedTraining(const std::string& model, const Options& shared, const Options& own,
                             const SessionShare& share, ForWhat what)
    : parser_(add_train_options) {
  parse(parser_, model, shared, own);
  MachineOptions& machine = parser_.arguments.options.machine;
  if (what == ForWhat::plan) machine.device = planning_device(machine);
  options_ = resolve(parser_.arguments);
  options_.machine.caller_bytes = share.caller_bytes();
}

std::string AskedTraining::command(const OptionValues& changes) const {
  return shown_training(parser_.app, option_names(parser_.app), options_, changes);
}

}  // namespace headroom::api
