// The question that decides everything else, as the command to run again.
#pragma once

#include <string>

#include "doctor/answer/request.h"

namespace headroom::doctor {

// A job whose model nothing names (a DeepSpeed or accelerate file by itself) has no estimate: the command that gives
// it, in the words of `request` with --model added. Empty where a model, a shape or a message is known.
std::string ask_for_model(const Request& request, const Case& incident);

}  // namespace headroom::doctor
