// Finds the model and the device of a job.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "doctor/answer/request.h"
#include "doctor/config/config_reader.h"
#include "doctor/messages/log_scanner.h"

namespace headroom::doctor {

// "7B", "350M", "1.1e9": a number of parameters. Throws Error(usage) with the text when it is not one.
double parse_parameters(const std::string& text);

// The model's shape, from the first of these that gives one: --model, --params, the configuration's model (a path
// relative to the configuration, or a name of the table), its architecture keys, a size in the model's name. Absent
// when none does. A name that was given and is unknown is an Error(usage) with a remedy.
std::optional<ModelShape> choose_shape(const Request& request, const std::optional<ConfigReading>& config,
                                       std::vector<std::string>& notes);

// The device from --gpu, the configuration or the log. When --gpu is a size, sets `capacity` instead.
std::optional<Gpu> choose_gpu(const Request& request, const std::optional<ConfigReading>& config, const LogReport& log,
                              std::optional<int64_t>& capacity);

}  // namespace headroom::doctor
