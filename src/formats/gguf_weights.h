// The weights of a GGUF, presented like a safetensors checkpoint of the same model, with Hugging Face's names and order
// of rows. F32, F16 and BF16 are unchanged; other types are decoded while they are read, and appear as F32.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "formats/gguf_file.h"
#include "formats/safetensors.h"

namespace headroom {

// Reading is const, thread-safe, and needs no heap.
class GgufWeights {
 public:
  // Throws as GgufFile::open; Error(format) naming tensor and offset for one that belongs to no known weight, or whose
  // rows do not fit the heads.
  static GgufWeights open(const std::filesystem::path& path);

  // By Hugging Face's names; StoredTensor::file is the index for the members below.
  StoredTensors tensors() const;
  // As it is stored.
  const GgufTensor& stored(int index) const { return weights_[static_cast<size_t>(index)].tensor; }
  // Bytes of the tensor with its type in tensors().
  void read(int index, int64_t byte_offset, std::span<std::byte> into) const;
  // For Q8_0 or Q4_0: the codes of whole pairs of elements from `first` on, in the format of block_codes.h, and the
  // scales of blocks.
  void read_codes(int index, int64_t first, std::span<std::byte> codes) const;
  void read_scales(int index, int64_t first_block, std::span<float> scales) const;

 private:
  struct Weight {
    std::string name;
    GgufTensor tensor;
    int64_t head_rows = 0;  // rows of a head that are ordered by neighbouring pairs; 0: no reordering
  };
  template <typename Body>
  static void each_run(const Weight& weight, int64_t begin, int64_t end, const Body& body);
  template <typename Body>
  void each_block(const Weight& weight, int64_t begin, int64_t end, const Body& body) const;

  GgufFile file_;
  std::vector<Weight> weights_;
};

}  // namespace headroom
