#include "formats/gguf_weights.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/block_codes.h"
#include "base/error.h"
#include "formats/gguf_config.h"
#include "formats/gguf_names.h"

namespace headroom {
namespace {

// Tensors that are not weights: config.json has their values (gguf_config.h).
constexpr std::string_view kInConfig = "rope_freqs.weight";

// The type under which it appears in tensors().
StoredType stands_as(GgmlType type) {
  return type == GgmlType::f16 ? StoredType::f16 : type == GgmlType::bf16 ? StoredType::bf16 : StoredType::f32;
}
bool stands_as_stored(GgmlType type) { return ggml_block(type).elements == 1; }

}  // namespace

GgufWeights GgufWeights::open(const std::filesystem::path& path) {
  GgufWeights result;
  result.file_ = GgufFile::open(path);
  const GgufHeader& header = result.file_.header();
  const auto named = header.values.find("general.architecture");
  const GgufArchitecture* const architecture = named != header.values.end() && named->second.is_string()
                                                   ? find_gguf_architecture(named->second.get<std::string>())
                                                   : nullptr;
  for (const GgufTensor& tensor : header.tensors) {
    if (tensor.name == kInConfig) continue;
    const auto refuse = [&](const std::string& what) {
      throw Error(ErrorKind::format,
                  fmt::format("{}: tensor '{}' at byte {} {}", path.string(), tensor.name, tensor.offset, what),
                  "this version reads the tensors of llama, qwen2 and qwen3 models: convert others to safetensors");
    };
    Weight weight{weight_of_gguf(tensor.name), tensor};
    if (weight.name.empty()) refuse("does not belong to a known weight");
    const RotaryRows rows = rotary_rows(weight.name);
    if (architecture && architecture->paired_rows && rows != RotaryRows::none) {
      const int64_t heads = gguf_heads(header, rows == RotaryRows::keys), count = tensor.shape.front();
      if (heads < 1 || count % heads != 0 || count / heads % 2 != 0)
        refuse(fmt::format("has {} rows for {} heads", count, heads));
      if (!stands_as_stored(tensor.type) && tensor.shape.size() != 2) refuse("has one dimension, and is quantised");
      weight.head_rows = count / heads;
    }
    result.weights_.push_back(std::move(weight));
  }
  return result;
}

StoredTensors GgufWeights::tensors() const {
  StoredTensors out;
  for (size_t i = 0; i < weights_.size(); ++i) {
    const GgufTensor& tensor = weights_[i].tensor;
    const StoredType type = stands_as(tensor.type);
    out[weights_[i].name] = {type, tensor.shape, tensor.offset, tensor.elements() * stored_type_bytes(type),
                             static_cast<int>(i)};
  }
  return out;
}

// Calls body(begin, end, moved) for the parts of the elements begin .. end in Hugging Face's order that are contiguous
// in the file too, at an offset of `moved` elements.
template <typename Body>
void GgufWeights::each_run(const Weight& weight, int64_t begin, int64_t end, const Body& body) {
  if (weight.head_rows == 0) return body(begin, end, int64_t{0});
  const int64_t columns = weight.tensor.elements() / weight.tensor.shape.front();
  while (begin < end) {
    const int64_t row = begin / columns, stop = std::min(end, (row + 1) * columns);
    body(begin, stop, (paired_row(row, weight.head_rows) - row) * columns);
    begin = stop;
  }
}

// Calls body(block, element) for the blocks that contain these elements; `element` is the block's first one.
template <typename Body>
void GgufWeights::each_block(const Weight& weight, int64_t begin, int64_t end, const Body& body) const {
  each_run(weight, begin, end, [&](int64_t from, int64_t to, int64_t moved) {
    file_.each_block(weight.tensor, from + moved, to + moved,
                     [&](const std::byte* block, int64_t first) { body(block, first - moved); });
  });
}

void GgufWeights::read(int index, int64_t byte_offset, std::span<std::byte> into) const {
  const Weight& weight = weights_[static_cast<size_t>(index)];
  const GgufTensor& tensor = weight.tensor;
  const int64_t width = stored_type_bytes(stands_as(tensor.type)), block = ggml_block(tensor.type).elements;
  HR_CHECK(byte_offset % width == 0 && static_cast<int64_t>(into.size()) % width == 0, "elements are read whole");
  const int64_t begin = byte_offset / width, end = begin + static_cast<int64_t>(into.size()) / width;
  if (stands_as_stored(tensor.type))
    return each_run(weight, begin, end, [&](int64_t from, int64_t to, int64_t moved) {
      file_.read(tensor, (from + moved) * width,
                 into.subspan(static_cast<size_t>((from - begin) * width), static_cast<size_t>((to - from) * width)));
    });
  each_block(weight, begin, end, [&](const std::byte* from, int64_t first) {
    float values[kMostBlockElements];
    decode_block(tensor.type, from, values);
    const int64_t least = std::max(first, begin), most = std::min(first + block, end);
    std::memcpy(into.data() + (least - begin) * width, values + (least - first),
                static_cast<size_t>((most - least) * width));
  });
}

void GgufWeights::read_codes(int index, int64_t first_element, std::span<std::byte> codes) const {
  const Weight& weight = weights_[static_cast<size_t>(index)];
  const int bits = ggml_code_bits(weight.tensor.type).value();
  const int64_t block = ggml_block(weight.tensor.type).elements, per_byte = 8 / bits;
  const int64_t begin = first_element / per_byte, end = begin + static_cast<int64_t>(codes.size());  // in bytes
  HR_CHECK(first_element % per_byte == 0, "codes from element {}", first_element);
  each_block(weight, begin * per_byte, end * per_byte, [&](const std::byte* from, int64_t element) {
    uint8_t of_block[kMostBlockElements];
    codes_of_block(weight.tensor.type, from, of_block);
    const int64_t first = element / per_byte;
    const int64_t least = std::max(first, begin), most = std::min(first + block / per_byte, end);
    std::memcpy(codes.data() + (least - begin), of_block + (least - first), static_cast<size_t>(most - least));
  });
}

void GgufWeights::read_scales(int index, int64_t first_block, std::span<float> scales) const {
  const Weight& weight = weights_[static_cast<size_t>(index)];
  const int64_t block = ggml_block(weight.tensor.type).elements;
  const int64_t end = first_block + static_cast<int64_t>(scales.size());
  each_block(weight, first_block * block, end * block, [&](const std::byte* from, int64_t element) {
    scales[static_cast<size_t>(element / block - first_block)] = scale_of_block(weight.tensor.type, from);
  });
}

}  // namespace headroom
