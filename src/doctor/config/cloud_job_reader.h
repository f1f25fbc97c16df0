// Job files of SkyPilot and Oumi's launcher: a YAML with a shell script under `run` and the hardware under `resources`.
#pragma once

#include <optional>
#include <string>

#include "doctor/config/part.h"
#include "formats/document.h"

namespace headroom::doctor {

// nullopt when the document is not such a job. Throws Error(format) with the line of `run` when its script has no
// command of a system that doctor reads.
std::optional<Parts> read_cloud_job(const std::string& name, const DocumentNode& root);

}  // namespace headroom::doctor
