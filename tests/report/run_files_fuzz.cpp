// Any file of a run gives records that the page can show, or an Error. Metrics read in two parts give the same as when
// read at once.
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "base/error.h"
#include "report/live_view.h"
#include "report/page.h"

namespace {

namespace fs = std::filesystem;
using namespace headroom;
using namespace headroom::report;

void write(const fs::path& file, const std::string& text) { std::ofstream(file, std::ios::binary) << text; }

// The part of the page for the records is bounded and contains no markup from the file.
void show(const Run& run) {
  const std::string html = page(run);
  if (html.size() > size_t{8} << 20 || html.find("<script") != std::string::npos) abort();
}

bool same(const Series& a, const Series& b) {
  return a.points().size() == b.points().size() && a.last() == b.last() && a.least() == b.least() &&
         a.most() == b.most();
}

void read_metrics(const fs::path& file, const std::string& text) {
  write(file, text.substr(0, text.size() / 2));
  MetricsReader parts(file);
  parts.poll();
  write(file, text);
  parts.poll();
  MetricsReader whole(file);
  whole.poll();
  const Metrics &a = parts.metrics(), &b = whole.metrics();
  if (a.lines != b.lines || a.tokens != b.tokens || a.eval_sets.size() != b.eval_sets.size() ||
      a.eval_sets.size() > 64 || !same(a.loss, b.loss) || !same(a.eval_loss, b.eval_loss) ||
      a.last.has_value() != b.last.has_value())
    abort();
  Run run;
  run.metrics = b;
  show(run);
}

void read_one(int kind, const fs::path& directory, const std::string& text) {
  constexpr const char* kNames[] = {"plan.json",     "run.json",  "process.json", "memory.json",
                                    "measured.json", "data.json", "metrics.jsonl"};
  const fs::path file = directory / kNames[kind];
  if (kind == 6) return read_metrics(file, text);
  write(file, text);
  Run run;
  if (kind == 0) run.plan = *read_plan(directory);
  run.end = read_end(directory);
  run.process = read_process(directory);
  run.memory = read_memory(directory);
  run.measured = read_measured(directory);
  run.lengths = read_lengths(directory);
  if (run.measured) run.measured.reset();  // used only with a memory.json of as many points
  show(run);
  LiveView view(directory);
  view.poll();
  for (const size_t columns : {1, 20, 80}) view.screen(columns);
  view.line();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 1) return 0;
  const fs::path directory = fs::temp_directory_path() / ("headroom-run-files-fuzz-" + std::to_string(::getpid()));
  fs::create_directories(directory);
  try {
    read_one(data[0] % 7, directory, std::string(reinterpret_cast<const char*>(data + 1), size - 1));
  } catch (const Error&) {
  }
  fs::remove_all(directory);
  return 0;
}
