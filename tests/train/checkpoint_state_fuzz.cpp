// Any state.json gives a state in range that is written and read back unchanged, or an Error; any metrics.jsonl is cut
// to lines that were in it.
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "base/error.h"
#include "train/checkpoint.h"
#include "train/cut_metrics.h"

namespace {

namespace fs = std::filesystem;

void write(const fs::path& file, const std::string& text) { std::ofstream(file, std::ios::binary) << text; }

std::string content_of(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

void read_twice(const fs::path& directory) {
  const headroom::RunState state = headroom::read_state(directory);
  if (state.step < 0 || state.next_sample < 0 || state.evals_since_best < 0 || state.best_step > state.step) abort();
  const std::string text = headroom::state_json(state);
  write(directory / "state.json", text);
  if (headroom::state_json(headroom::read_state(directory)) != text) abort();
}

void cut_twice(const fs::path& file, const std::string& text) {
  headroom::cut_metrics(file, 1000);
  const std::string kept = content_of(file);
  if (kept.size() > text.size() + 1) abort();  // the last line may get a line end
  headroom::cut_metrics(file, 1000);
  if (content_of(file) != kept) abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 1) return 0;
  static const fs::path directory = fs::temp_directory_path() / ("headroom-state-fuzz-" + std::to_string(::getpid()));
  fs::create_directories(directory);
  const std::string text(reinterpret_cast<const char*>(data + 1), size - 1);
  try {
    if (data[0] % 2 == 0) {
      write(directory / "state.json", text);
      read_twice(directory);
    } else {
      write(directory / "metrics.jsonl", text);
      cut_twice(directory / "metrics.jsonl", text);
    }
  } catch (const headroom::Error&) {
  }
  return 0;
}
