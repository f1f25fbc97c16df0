#include "formats/safetensors.h"

#include <array>
#include <bit>
#include <cstring>
#include <numeric>
#include <utility>

#include "base/bytes.h"
#include "base/error.h"
#include "formats/gguf_weights.h"
#include "formats/json_characters.h"
#include "formats/safetensors_header.h"
#include "formats/safetensors_index.h"

namespace headroom {
namespace {

static_assert(std::endian::native == std::endian::little, "tensor bytes are read as they are stored");

constexpr std::string_view kSingle = "model.safetensors";
constexpr std::string_view kIndex = "model.safetensors.index.json";
constexpr int64_t kIndexFactor = 5;  // as for a header's longest string (safetensors_header.h)

void read_range(const File& file, const StoredTensor& tensor, int64_t byte_offset, std::span<std::byte> into) {
  const auto bytes = static_cast<int64_t>(into.size());
  HR_CHECK(byte_offset >= 0 && byte_offset <= tensor.bytes && bytes <= tensor.bytes - byte_offset,
           "read of {} bytes at {} of a tensor of {}", bytes, byte_offset, tensor.bytes);
  file.read_at(tensor.offset + byte_offset, into);
  file.drop_cache(tensor.offset + byte_offset, bytes);
}

uint64_t header_length(const File& file) {
  uint64_t length = 0;
  std::array<std::byte, 8> prefix{};
  file.read_at(0, prefix);
  std::memcpy(&length, prefix.data(), prefix.size());
  return length;
}

[[noreturn]] void no_weights(const std::filesystem::path& directory) {
  std::error_code status;
  if (!std::filesystem::is_directory(directory, status))
    throw Error(ErrorKind::usage, fmt::format("{} is not a directory", directory.string()),
                "give the directory of a model: config.json and model.safetensors");
  for (const char* other : {"pytorch_model.bin", "pytorch_model.bin.index.json", "tf_model.h5", "flax_model.msgpack"})
    if (std::filesystem::exists(directory / other, status))
      throw Error(ErrorKind::usage, fmt::format("{} holds {} but no {}", directory.string(), other, kSingle),
                  "save the model with save_pretrained(safe_serialization=True)");
  throw Error(ErrorKind::usage, fmt::format("{} has neither {} nor {}", directory.string(), kSingle, kIndex),
              "check the directory, or make a fresh model with `headroom init`");
}

}  // namespace

SafetensorsFile SafetensorsFile::open(const std::filesystem::path& path, int64_t most_header) {
  SafetensorsFile result;
  result.file_ = File::open(path);
  const int64_t size = result.file_.size();
  const auto refuse = [&](const std::string& problem) {
    throw Error(ErrorKind::format, fmt::format("{}: {}", path.string(), problem),
                "the file is truncated or not a safetensors file; download it again");
  };
  if (size < 8) refuse(fmt::format("has {} bytes, a safetensors file has at least 8", size));
  const uint64_t length = header_length(result.file_);
  if (length > static_cast<uint64_t>(most_header))
    refuse(fmt::format("announces a header of {} bytes, more than the limit of {}", length, most_header));
  const auto header_bytes = static_cast<int64_t>(length);
  if (header_bytes > size - 8)
    refuse(fmt::format("announces a header of {} bytes but has only {} after it", length, size - 8));
  JsonCharacters text(result.file_, 8, header_bytes);
  result.tensors_ = parse_safetensors_header(text, 8 + header_bytes, size - 8 - header_bytes, path.string());
  return result;
}

int64_t SafetensorsFile::table_bytes(const std::filesystem::path& path) {
  std::error_code status;
  if (!std::filesystem::is_regular_file(path, status)) return 0;
  const File file = File::open(path);
  if (file.size() < 8) return 0;
  const uint64_t length = header_length(file);
  return length > static_cast<uint64_t>(kMaxHeaderBytes) ? 0 : kHeaderFactor * static_cast<int64_t>(length);
}

const StoredTensor* SafetensorsFile::find(std::string_view name) const {
  const auto it = tensors_.find(name);
  return it == tensors_.end() ? nullptr : &it->second;
}

void SafetensorsFile::read(std::string_view name, int64_t byte_offset, std::span<std::byte> into) const {
  const StoredTensor* tensor = find(name);
  if (tensor == nullptr)
    throw Error(ErrorKind::format, fmt::format("{} has no tensor '{}'", path().string(), name),
                "check that the checkpoint belongs to this config.json");
  read(*tensor, byte_offset, into);
}

void SafetensorsFile::read(const StoredTensor& tensor, int64_t byte_offset, std::span<std::byte> into) const {
  read_range(file_, tensor, byte_offset, into);
}

SafetensorsSet SafetensorsSet::open(const std::filesystem::path& model_directory, int64_t most_header) {
  SafetensorsSet set;
  set.directory_ = model_directory;
  if (is_gguf(model_directory)) {
    set.gguf_ = std::make_shared<const GgufWeights>(GgufWeights::open(model_directory));
    set.tensors_ = set.gguf_->tensors();
    return set;
  }
  std::error_code status;
  const std::filesystem::path index = model_directory / kIndex;
  std::vector<std::string> names{std::string(kSingle)};
  const bool indexed = !std::filesystem::exists(model_directory / kSingle, status);
  if (indexed && !std::filesystem::exists(index, status)) no_weights(model_directory);
  if (indexed) names = files_of_index(index);
  const auto refuse = [&](const std::string& problem) {
    throw Error(ErrorKind::format, fmt::format("{}: {}", index.string(), problem),
                "download the checkpoint again, all of its shards");
  };
  for (const std::string& name : names) {
    if (!std::filesystem::exists(model_directory / name, status)) refuse(fmt::format("the shard {} is missing", name));
    SafetensorsFile file = SafetensorsFile::open(model_directory / name, most_header);
    for (auto& [tensor_name, tensor] : file.tensors_) {
      tensor.file = static_cast<int>(set.files_.size());
      if (const StoredTensor* other = set.find(tensor_name))
        refuse(fmt::format("tensor '{}' is both in {} and in {}", tensor_name, names[static_cast<size_t>(other->file)],
                           name));
    }
    set.tensors_.merge(file.tensors_);
    set.files_.push_back(std::move(file));
  }
  if (!indexed) return set;
  std::string missing;
  read_safetensors_index(index, [&](const std::string& tensor_name, const std::string& listed) {
    const StoredTensor* tensor = set.find(tensor_name);
    if (tensor == nullptr) {
      if (missing.empty()) missing = fmt::format("tensor '{}' is not in {}", tensor_name, listed);
    } else if (const std::string& name = names[static_cast<size_t>(tensor->file)]; name != listed) {
      refuse(fmt::format("tensor '{}' is listed in {} but is in {}", tensor_name, listed, name));
    }
  });
  if (!missing.empty()) refuse(missing);
  return set;
}

int64_t SafetensorsSet::table_bytes(const std::filesystem::path& model_directory) {
  if (is_gguf(model_directory)) return GgufFile::table_bytes(model_directory);
  std::error_code status;
  const std::filesystem::path index = model_directory / kIndex;
  if (std::filesystem::exists(model_directory / kSingle, status) || !std::filesystem::exists(index, status))
    return SafetensorsFile::table_bytes(model_directory / kSingle);
  int64_t bytes = kIndexFactor * File::open(index).size();
  for (const std::string& name : files_of_index(index)) bytes += SafetensorsFile::table_bytes(model_directory / name);
  return bytes;
}

int64_t SafetensorsSet::total_bytes() const {
  return std::accumulate(tensors_.begin(), tensors_.end(), int64_t{0},
                         [](int64_t sum, const auto& named) { return sum + named.second.bytes; });
}

std::map<std::string, int64_t> SafetensorsSet::bytes_by_type() const {
  std::map<std::string, int64_t> bytes;
  for (const auto& [name, tensor] : tensors_)
    if (gguf_)
      bytes[ggml_type_name(gguf_->stored(tensor.file).type)] += gguf_->stored(tensor.file).bytes;
    else
      bytes[std::string(stored_type_name(tensor.type))] += tensor.bytes;
  return bytes;
}

const StoredTensor* SafetensorsSet::find(std::string_view name) const {
  const auto it = tensors_.find(name);
  return it == tensors_.end() ? nullptr : &it->second;
}

const StoredTensor& SafetensorsSet::at(std::string_view name) const {
  if (const StoredTensor* tensor = find(name)) return *tensor;
  throw Error(ErrorKind::format, fmt::format("{}: the weights have no tensor '{}'", directory_.string(), name),
              "check that the checkpoint belongs to this config.json");
}

void SafetensorsSet::read(std::string_view name, int64_t byte_offset, std::span<std::byte> into) const {
  read(at(name), byte_offset, into);
}

void SafetensorsSet::read(const StoredTensor& tensor, int64_t byte_offset, std::span<std::byte> into) const {
  if (gguf_) return gguf_->read(tensor.file, byte_offset, into);
  files_[static_cast<size_t>(tensor.file)].read(tensor, byte_offset, into);
}

}  // namespace headroom
