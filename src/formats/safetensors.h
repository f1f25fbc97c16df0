// Reads safetensors checkpoints: one file, or shards listed by model.safetensors.index.json. Only the tables of tensors
// stay in memory; headers and index are read piece by piece. Tensor bytes are read by pread on demand and then dropped
// from the page cache. Layout of a file: 8 bytes little-endian header length N, N bytes of JSON {"name": {"dtype",
// "shape", "data_offsets": [begin, end]}, "__metadata__": {...}}, then the data.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "formats/file.h"
#include "formats/stored_type.h"

namespace headroom {

// The largest header, or index of a checkpoint's files, in bytes.
inline constexpr int64_t kMaxHeaderBytes = 100'000'000;

struct StoredTensor {
  StoredType type = StoredType::f32;
  std::vector<int64_t> shape;
  int64_t offset = 0;  // of its first byte, from the start of its file
  int64_t bytes = 0;
  int file = 0;  // index of its file in a SafetensorsSet, or of its tensor in a GGUF

  // Product of the shape; 1 for a scalar.
  int64_t elements() const { return bytes / stored_type_bytes(type); }
};

using StoredTensors = std::map<std::string, StoredTensor, std::less<>>;

// One file. Reading is const and thread-safe.
class SafetensorsFile {
 public:
  // Opens the file, and reads and checks only its header: at most `most_header` bytes of JSON (100 MB), known dtypes,
  // sizes equal to shape x dtype, data without holes, overlaps or duplicates that ends at the end of the file. Throws
  // Error(usage) if the file is missing, Error(format) naming file, tensor and value.
  static SafetensorsFile open(const std::filesystem::path& path, int64_t most_header = kMaxHeaderBytes);
  // A bound on the heap bytes that open() holds at once, from the header's length alone; 0 if open() would refuse that.
  static int64_t table_bytes(const std::filesystem::path& path);

  const std::filesystem::path& path() const { return file_.path(); }
  // Sorted by name.
  const StoredTensors& tensors() const { return tensors_; }

  // The tensor, or nullptr.
  const StoredTensor* find(std::string_view name) const;
  // Reads into.size() bytes from `byte_offset` within the tensor. Throws Error(format) if the tensor does not exist or
  // the file has been cut since, Error(run) on an I/O error. The range must lie within the tensor. No heap allocation.
  void read(std::string_view name, int64_t byte_offset, std::span<std::byte> into) const;
  void read(const StoredTensor& tensor, int64_t byte_offset, std::span<std::byte> into) const;

 private:
  friend class SafetensorsSet;
  File file_;
  StoredTensors tensors_;
};

class GgufWeights;

// All the weights of a model: model.safetensors of its directory, or the shards of model.safetensors.index.json; or a
// .gguf file, presented as the safetensors of the same model (gguf_weights.h). Thread-safe like SafetensorsFile.
class SafetensorsSet {
 public:
  // Throws Error(usage) if there are no weights (naming other formats in the folder), Error(format) for a missing
  // shard, a tensor in two shards, or an index that disagrees with the shards.
  static SafetensorsSet open(const std::filesystem::path& model, int64_t most_header = kMaxHeaderBytes);
  // Like SafetensorsFile::table_bytes, for all files and the index.
  static int64_t table_bytes(const std::filesystem::path& model);

  // The directory, or the .gguf file.
  const std::filesystem::path& directory() const { return directory_; }
  // Null for safetensors.
  const GgufWeights* gguf() const { return gguf_.get(); }
  // Sum of the stored bytes by type: {"BF16", 1024}.
  std::map<std::string, int64_t> bytes_by_type() const;
  // Every tensor of every file, sorted by name; StoredTensor::file says which file.
  const StoredTensors& tensors() const { return tensors_; }
  // Sum of the tensors' bytes.
  int64_t total_bytes() const;

  // The tensor, or nullptr.
  const StoredTensor* find(std::string_view name) const;
  // The tensor. Throws Error(format) naming the directory and the tensor if it does not exist.
  const StoredTensor& at(std::string_view name) const;
  // Like SafetensorsFile::read.
  void read(std::string_view name, int64_t byte_offset, std::span<std::byte> into) const;
  void read(const StoredTensor& tensor, int64_t byte_offset, std::span<std::byte> into) const;

 private:
  std::filesystem::path directory_;
  std::vector<SafetensorsFile> files_;
  std::shared_ptr<const GgufWeights> gguf_;
  StoredTensors tensors_;
};

}  // namespace headroom
