#include "arguments/profile_options.h"

namespace headroom {

void add_profile_options(CLI::App& app, ProfileOptions& options) {
  scalar(app, "--device", options.device, "what to measure: cpu or cuda:N")->capture_default_str();
  scalar(app, "-o,--output", options.output, "profile file (default: the cached one)");
  scalar(app, "--disk", options.disk, "directory on the disk to measure (default: the profile's)")->type_name("DIR");
  scalar(app, "--threads", options.threads, "threads (default: one for each CPU that the process may use)");
}

}  // namespace headroom
