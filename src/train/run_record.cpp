#include "train/run_record.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>

#include "base/error.h"
#include "formats/atomic_dir.h"
#include "formats/file.h"
#include "formats/json.h"
#include "plan/step_memory.h"
#include "planner/candidates.h"

namespace headroom {
namespace {

constexpr size_t kMaxRungs = 64;

// Field 22 of /proc/self/stat; the second, the program's name in parentheses, may hold anything.
int64_t own_start_ticks() {
  const std::string text = read_system_file("/proc/self/stat");
  size_t at = text.rfind(')');
  for (int field = 2; field < 22 && at != std::string::npos; ++field) at = text.find(' ', at + 1);
  return at == std::string::npos ? 0 : std::strtoll(text.c_str() + at, nullptr, 10);
}

std::string setting_of(const Candidate& candidate) {
  std::string text = fmt::format("micro-batch {}", candidate.micro_batch);
  if (candidate.loss_chunk > 0) text += fmt::format(", loss chunk {}", candidate.loss_chunk);
  text += ", " + describe_keep(candidate.keep);
  if (candidate.weight_copies) text += ", bf16 copies";
  if (candidate.fused_optimizer) text += ", fused optimizer";
  return text.size() <= 200 ? text : text.substr(0, 197) + "...";
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

std::string memory_record(const SearchResult& found) {
  std::vector<BudgetPoint> points;
  const size_t count = found.frontier.size(), kept = std::min(count, kMaxRungs);
  for (size_t i = 0; i < kept; ++i) {
    // The first and the last are always among them.
    const FrontierPoint& point = found.frontier[kept > 1 ? i * (count - 1) / (kept - 1) : 0];
    points.push_back({point.peaks.device, point.packed, point.step_seconds, setting_of(point.candidate)});
  }
  return memory_json(found.plan, step_memory(found.plan, "train_step"), points);
}

}  // namespace headroom
