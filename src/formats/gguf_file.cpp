#include "formats/gguf_file.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"

namespace headroom {
namespace {

namespace fs = std::filesystem;

ByteSource source_of(const File& file) {
  return {file.size(), [&file](int64_t offset, std::span<std::byte> into) { file.read_at(offset, into); },
          file.path().string()};
}

}  // namespace

bool is_gguf(const fs::path& path) { return path.extension() == ".gguf"; }

fs::path gguf_of_model(const fs::path& model) {
  std::error_code status;
  if (!fs::is_directory(model, status)) return is_gguf(model) ? model : fs::path();
  if (fs::exists(model / "model.safetensors", status) || fs::exists(model / "model.safetensors.index.json", status))
    return {};
  fs::path found;
  for (fs::directory_iterator at(model, status), end; !status && at != end; at.increment(status)) {
    if (!is_gguf(at->path())) continue;
    if (!found.empty())
      throw Error(
          ErrorKind::usage,
          fmt::format("{} holds several models: {} and {}", model.string(),
                      std::min(found, at->path()).filename().string(), std::max(found, at->path()).filename().string()),
          "give the .gguf file");
    found = at->path();
  }
  return found;
}

GgufFile GgufFile::open(const fs::path& path) {
  GgufFile result;
  result.file_ = File::open(path);
  result.header_ = parse_gguf_header(source_of(result.file_));
  const auto parts = result.header_.values.find("split.count");
  if (parts != result.header_.values.end() && parts->second != 1)
    throw Error(ErrorKind::usage, fmt::format("{} is one of {} parts of a model", path.string(), parts->second.dump()),
                "join them with llama-gguf-split --merge");
  return result;
}

int64_t GgufFile::table_bytes(const fs::path& path) {
  std::error_code status;
  if (!fs::is_regular_file(path, status)) return 0;
  const File file = File::open(path);
  return gguf_table_bytes(source_of(file));
}

ByteSource GgufFile::source() const { return source_of(file_); }

void GgufFile::read(const GgufTensor& tensor, int64_t offset, std::span<std::byte> into) const {
  const auto bytes = static_cast<int64_t>(into.size());
  HR_CHECK(offset >= 0 && offset <= tensor.bytes && bytes <= tensor.bytes - offset,
           "read of {} bytes at {} of a tensor of {}", bytes, offset, tensor.bytes);
  file_.read_at(tensor.offset + offset, into);
  file_.drop_cache(tensor.offset + offset, bytes);
}

}  // namespace headroom
