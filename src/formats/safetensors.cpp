#include "formats/safetensors.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <numeric>
#include <utility>

#include "base/bytes.h"
#include "base/error.h"
#include "formats/json.h"
#include "formats/safetensors_header.h"

namespace headroom {
namespace {

static_assert(std::endian::native == std::endian::little, "tensor bytes are read as they are stored");

constexpr int64_t kMaxHeader = 100'000'000;
constexpr std::string_view kSingle = "model.safetensors";
constexpr std::string_view kIndex = "model.safetensors.index.json";

void read_range(const File& file, const StoredTensor& tensor, int64_t byte_offset, std::span<std::byte> into) {
  const auto bytes = static_cast<int64_t>(into.size());
  HR_CHECK(byte_offset >= 0 && byte_offset <= tensor.bytes && bytes <= tensor.bytes - byte_offset,
           "read of {} bytes at {} of a tensor of {}", bytes, byte_offset, tensor.bytes);
  file.read_at(tensor.offset + byte_offset, into);
  file.drop_cache(tensor.offset + byte_offset, bytes);
}

[[noreturn]] void no_weights(const std::filesystem::path& directory) {
  std::error_code status;
  if (!std::filesystem::is_directory(directory, status))
    throw Error(ErrorKind::usage, fmt::format("{} is no directory", directory.string()),
                "give the directory of a model: config.json and model.safetensors");
  for (const char* other : {"pytorch_model.bin", "pytorch_model.bin.index.json", "tf_model.h5", "flax_model.msgpack"})
    if (std::filesystem::exists(directory / other, status))
      throw Error(ErrorKind::usage, fmt::format("{} holds {} but no {}", directory.string(), other, kSingle),
                  "save the model with save_pretrained(safe_serialization=True)");
  throw Error(ErrorKind::usage, fmt::format("{} has neither {} nor {}", directory.string(), kSingle, kIndex),
              "check the directory, or make a fresh model with `headroom init`");
}

// The index's weight_map: tensor -> shard, a plain file name beside the index.
std::map<std::string, std::string> read_weight_map(const std::filesystem::path& index) {
  const auto refuse = [&](const std::string& problem) {
    throw Error(ErrorKind::format, fmt::format("{}: {}", index.string(), problem), "download the checkpoint again");
  };
  const Json json = read_json(index, kMaxHeader);
  if (!json.is_object() || !json.contains("weight_map") || !json["weight_map"].is_object())
    refuse("has no object weight_map");
  std::map<std::string, std::string> map;
  for (const auto& [tensor, shard] : json["weight_map"].items()) {
    if (!shard.is_string()) refuse(fmt::format("weight_map of '{}' is no text", tensor));
    const auto name = shard.get<std::string>();
    if (name.empty() || name == "." || name == ".." ||
        name.find_first_of(std::string_view("/\\\0", 3)) != std::string::npos)
      refuse(fmt::format("weight_map of '{}' is '{}', not the name of a file beside it", tensor, name));
    map.emplace(tensor, name);
  }
  if (map.empty()) refuse("weight_map is empty");
  return map;
}

std::vector<std::string> shard_names(const std::map<std::string, std::string>& weight_map) {
  std::vector<std::string> names;
  for (const auto& [tensor, shard] : weight_map) names.push_back(shard);
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

}  // namespace

SafetensorsFile SafetensorsFile::open(const std::filesystem::path& path) {
  SafetensorsFile result;
  result.file_ = File::open(path);
  const int64_t size = result.file_.size();
  const auto refuse = [&](const std::string& problem) {
    throw Error(ErrorKind::format, fmt::format("{}: {}", path.string(), problem),
                "the file is truncated or no safetensors file; download it again");
  };
  if (size < 8) refuse(fmt::format("has {} bytes, a safetensors file has at least 8", size));
  uint64_t length = 0;
  std::array<std::byte, 8> prefix{};
  result.file_.read_at(0, prefix);
  std::memcpy(&length, prefix.data(), prefix.size());
  if (length > static_cast<uint64_t>(kMaxHeader))
    refuse(fmt::format("announces a header of {} bytes, more than the limit of {}", length, kMaxHeader));
  const auto header_bytes = static_cast<int64_t>(length);
  if (header_bytes > size - 8)
    refuse(fmt::format("announces a header of {} bytes but has only {} after it", length, size - 8));
  std::string text(static_cast<size_t>(header_bytes), '\0');
  result.file_.read_at(8, std::as_writable_bytes(std::span(text)));
  SafetensorsHeader header = parse_safetensors_header(text, 8 + header_bytes, size - 8 - header_bytes, path.string());
  result.tensors_ = std::move(header.tensors);
  result.metadata_ = std::move(header.metadata);
  return result;
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

SafetensorsSet SafetensorsSet::open(const std::filesystem::path& model_directory) {
  SafetensorsSet set;
  set.directory_ = model_directory;
  std::error_code status;
  const std::filesystem::path index = model_directory / kIndex;
  std::map<std::string, std::string> weight_map;
  std::vector<std::string> names{std::string(kSingle)};
  if (!std::filesystem::exists(model_directory / kSingle, status)) {
    if (!std::filesystem::exists(index, status)) no_weights(model_directory);
    weight_map = read_weight_map(index);
    names = shard_names(weight_map);
  }
  const auto refuse = [&](const std::string& problem) {
    throw Error(ErrorKind::format, fmt::format("{}: {}", index.string(), problem),
                "download the checkpoint again, all of its shards");
  };
  for (const std::string& name : names) {
    if (!std::filesystem::exists(model_directory / name, status)) refuse(fmt::format("the shard {} is missing", name));
    SafetensorsFile file = SafetensorsFile::open(model_directory / name);
    for (auto& [tensor_name, tensor] : file.tensors_) {
      tensor.file = static_cast<int>(set.files_.size());
      if (const StoredTensor* other = set.find(tensor_name))
        refuse(fmt::format("tensor '{}' is both in {} and in {}", tensor_name, names[static_cast<size_t>(other->file)],
                           name));
      const auto listed = weight_map.find(tensor_name);
      if (!weight_map.empty() && listed != weight_map.end() && listed->second != name)
        refuse(fmt::format("tensor '{}' is listed in {} but lies in {}", tensor_name, listed->second, name));
    }
    set.tensors_.merge(file.tensors_);
    set.files_.push_back(std::move(file));
  }
  for (const auto& [tensor_name, shard] : weight_map)
    if (set.find(tensor_name) == nullptr) refuse(fmt::format("tensor '{}' is not in {}", tensor_name, shard));
  return set;
}

int64_t SafetensorsSet::total_bytes() const {
  return std::accumulate(tensors_.begin(), tensors_.end(), int64_t{0},
                         [](int64_t sum, const auto& named) { return sum + named.second.bytes; });
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
  files_[static_cast<size_t>(tensor.file)].read(tensor, byte_offset, into);
}

}  // namespace headroom
