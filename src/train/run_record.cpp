#include "train/run_record.h"

#include <unistd.h>

#include <chrono>

#include "base/error.h"
#include "formats/atomic_dir.h"
#include "formats/file.h"
#include "formats/json.h"

namespace headroom {
namespace {

// Field 22 of /proc/self/stat; the second, the program's name in parentheses, may hold anything.
int64_t own_start_ticks() {
  const std::string text = read_system_file("/proc/self/stat");
  size_t at = text.rfind(')');
  for (int field = 2; field < 22 && at != std::string::npos; ++field) at = text.find(' ', at + 1);
  return at == std::string::npos ? 0 : std::strtoll(text.c_str() + at, nullptr, 10);
}

}  // namespace

RunRecord write_process_json(const std::filesystem::path& directory, int64_t first_step, int64_t total_steps) {
  const auto since_epoch = std::chrono::system_clock::now().time_since_epoch();
  const RunRecord record{std::chrono::duration_cast<std::chrono::milliseconds>(since_epoch).count(), first_step,
                         total_steps};
  char host[65] = {};
  ::gethostname(host, sizeof host - 1);
  const Json json{{"pid", ::getpid()},
                  {"start_ticks", own_start_ticks()},
                  {"host", host},
                  {"started_unix_ms", record.started_unix_ms},
                  {"first_step", first_step},
                  {"total_steps", total_steps}};
  write_text_durably(directory / "process.json", json.dump(-1, ' ', true, Json::error_handler_t::replace) + "\n");
  return record;
}

}  // namespace headroom
