// Which model and which device a job is about.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "doctor/answer/request.h"
#include "doctor/config/config_reader.h"
#include "doctor/messages/log_scanner.h"

namespace headroom::doctor {

// "7B", "350M", "1.1e9": a count of parameters. Throws Error(usage) naming the text when it is none.
double parse_parameters(const std::string& text);

// The shape of the model: --model, --params, the configuration's model (a path beside the configuration, or a name of
// the table), its own architecture keys, or a size in the model's name, in this order. Absent when nothing tells; a
// name that was given and is unknown is an Error(usage) with the nearest way out.
std::optional<ModelShape> choose_shape(const Request& request, const std::optional<ConfigReading>& config,
                                       std::vector<std::string>& notes);

// The device: --gpu, the configuration's, or the one a log names. A size as --gpu sets `capacity` instead.
std::optional<Gpu> choose_gpu(const Request& request, const std::optional<ConfigReading>& config, const LogReport& log,
                              std::optional<int64_t>& capacity);

}  // namespace headroom::doctor
