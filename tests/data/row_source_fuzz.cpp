// Whole data files: a cache or an Error, and no other files are left.
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "base/error.h"
#include "data/token_cache_builder.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace headroom;
  namespace fs = std::filesystem;
  const fs::path directory = fs::temp_directory_path() / ("headroom-row-source-fuzz-" + std::to_string(::getpid()));
  fs::create_directories(directory);
  if (size < 1) return 0;
  const char* names[] = {"d.jsonl", "d.txt"};
  const fs::path file = directory / names[data[0] % 2];
  std::ofstream(file, std::ios::binary)
      .write(reinterpret_cast<const char*>(data + 1), static_cast<std::streamsize>(size - 1));
  static const Tokenizer tokenizer = Tokenizer::bytes();
  const DataOptions options{{file}, 1 + data[0] % 7, 258, 64 + data[0]};
  try {
    build_token_cache(options, data[0] & 8 ? nullptr : &tokenizer, directory / "cache");
    const TokenCache cache = TokenCache::open(directory / "cache");
    std::vector<int32_t> ids(8), labels(8);
    int64_t targets = 0;
    for (int64_t i = 0; i < cache.sequences(); ++i) targets += cache.read(i, ids, labels).targets;
    if (targets != cache.counts().targets || targets == 0) abort();
  } catch (const Error&) {
    if (fs::exists(directory / "cache")) abort();
  }
  fs::remove(directory / "cache");
  fs::remove(file);
  if (!fs::is_empty(directory)) abort();
  return 0;
}
