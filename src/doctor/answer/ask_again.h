// The command to run again when the model is not known.
#pragma once

#include <string>

#include "doctor/answer/request.h"

namespace headroom::doctor {

// A job that names no model (a DeepSpeed or accelerate file by itself) has no estimate. Returns `request`'s command
// with --model added. Empty when a model, a shape or a message is known.
std::string ask_for_model(const Request& request, const Case& incident);

}  // namespace headroom::doctor
