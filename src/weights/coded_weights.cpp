#include "weights/coded_weights.h"

#include <algorithm>
#include <cmath>

#include "base/block_codes.h"
#include "base/dynamic_map.h"
#include "base/error.h"
#include "base/threads.h"
#include "weights/weights.h"

namespace headroom {
namespace {

// A run of blocks.
struct Blocks {
  int64_t begin = 0;
  int64_t end = 0;
};

// A weight that is being written to the arena, some blocks at a time.
class Coding {
 public:
  Coding(Executor& executor, const PersistentTensor& weight, const SafetensorsSet& files, const std::string& stored)
      : executor_(executor),
        files_(files),
        stored_(stored),
        storage_(weight.place.type.storage),
        elements_(element_count(weight.place.type.dims)),
        layout_(storage_layout(storage_, elements_)),
        base_(executor.tensor(weight.name).as<std::byte>()) {
    // An eighth of the staging is for scales, as much for what codes of scales need, the rest for the weight's numbers.
    const std::span<std::byte> staging = executor.staging("load");
    const size_t eighth = staging.size() / 8 / 1024 * 1024;
    HR_CHECK(eighth > 0, "{} bytes of staging", staging.size());
    scales_ = {reinterpret_cast<float*>(staging.data()), eighth / 4};
    coded_ = staging.subspan(eighth, eighth);
    values_ = {reinterpret_cast<float*>(staging.data() + 2 * eighth), (staging.size() - 2 * eighth) / 8 * 2};
  }

  void run() {
    const auto each = static_cast<int64_t>(scales_.size());
    if (storage_.scale_block != 0) {
      for (int64_t begin = 0; begin < layout_.scale_count; begin += each) add_to_mean(next(begin, each));
      write(layout_.scale_scales + layout_.scale_scale_count * 4, std::as_bytes(std::span<const float>(&mean_, 1)));
    }
    for (int64_t begin = 0; begin < layout_.scale_count; begin += each) {
      const Blocks blocks = next(begin, each);
      find_scales(blocks);
      write_codes(blocks);
      if (storage_.scale_block == 0)
        write(layout_.scales + 4 * blocks.begin, std::as_bytes(scales_of(blocks)));
      else
        write_coded_scales(blocks);
    }
  }

 private:
  Blocks next(int64_t begin, int64_t most) const { return {begin, std::min(layout_.scale_count, begin + most)}; }
  std::span<float> scales_of(const Blocks& blocks) const {
    return scales_.first(static_cast<size_t>(blocks.end - blocks.begin));
  }

  // Calls body(first, values) for the elements first .. end of the stored tensor, a piece at a time.
  template <typename Body>
  void each_piece(int64_t first, int64_t end, const Body& body) {
    const auto most = static_cast<int64_t>(values_.size());
    for (; first < end; first += most) {
      const std::span<float> values = values_.first(static_cast<size_t>(std::min(most, end - first)));
      read_floats(files_, stored_, first, values);
      body(first, std::span<const float>(values));
    }
  }

  int64_t end_of(const Blocks& blocks) const { return std::min(elements_, blocks.end * storage_.block); }

  void find_scales(const Blocks& blocks) {
    std::fill_n(scales_.begin(), blocks.end - blocks.begin, 0.0f);
    each_piece(blocks.begin * storage_.block, end_of(blocks), [&](int64_t first, std::span<const float> values) {
      each_block_part(storage_, first, values, [&](int64_t block, int64_t, std::span<const float> part) {
        float& scale = scales_[static_cast<size_t>(block - blocks.begin)];
        scale = std::max(scale, scale_of(storage_.codes, storage_.payload_bits, part));
      });
    });
  }

  void add_to_mean(const Blocks& blocks) {
    find_scales(blocks);
    for (const float scale : scales_of(blocks)) sum_ += static_cast<double>(scale);
    mean_ = static_cast<float>(sum_ / static_cast<double>(blocks.end));
  }

  void write_codes(const Blocks& blocks) {
    const int bits = storage_.payload_bits;
    const int64_t origin = blocks.begin * storage_.block, end = end_of(blocks), per_byte = 8 / bits;
    const int64_t bytes = code_bytes(end - origin, bits);
    executor_.write(bytes_view(code_bytes(origin, bits), bytes), [&](int64_t at, std::span<std::byte> piece) {
      const int64_t begin = origin + at * per_byte;
      each_piece(begin, std::min(end, begin + static_cast<int64_t>(piece.size()) * per_byte),
                 [&](int64_t first, std::span<const float> values) {
                   each_block_part(
                       storage_, first, values, [&](int64_t block, int64_t from, std::span<const float> part) {
                         encode(storage_.codes, bits, scales_[static_cast<size_t>(block - blocks.begin)], part,
                                reinterpret_cast<uint8_t*>(piece.data()) + code_bytes(from - begin, bits));
                       });
                 });
    });
  }

  void write_coded_scales(const Blocks& blocks) {
    const std::span<float> scales = scales_of(blocks);
    const auto each = static_cast<size_t>(storage_.scale_block);
    const std::span<float> outer(reinterpret_cast<float*>(coded_.data()), (scales.size() + each - 1) / each);
    const std::span<uint8_t> codes(reinterpret_cast<uint8_t*>(coded_.data() + outer.size_bytes()), scales.size());
    code_scales(scales, mean_, storage_.scale_block, outer, codes);
    write(layout_.scales + blocks.begin, std::as_bytes(codes));
    write(layout_.scale_scales + blocks.begin / storage_.scale_block * 4, std::as_bytes(outer));
  }

  TensorView bytes_view(int64_t offset, const int64_t& bytes) const {
    return {base_ + offset, DType::u8, std::span<const int64_t>(&bytes, 1)};
  }
  void write(int64_t offset, std::span<const std::byte> from) {
    const auto bytes = static_cast<int64_t>(from.size());
    executor_.write(bytes_view(offset, bytes), [&](int64_t at, std::span<std::byte> piece) {
      std::copy_n(from.begin() + at, piece.size(), piece.begin());
    });
  }

  Executor& executor_;
  const SafetensorsSet& files_;
  const std::string& stored_;
  Storage storage_;
  int64_t elements_;
  StorageLayout layout_;
  std::byte* base_;
  std::span<float> scales_, values_;  // in the staging
  std::span<std::byte> coded_;
  double sum_ = 0;
  float mean_ = 0;  // of the scales
};

}  // namespace

float mean_of(std::span<const float> scales) {
  double sum = 0;
  for (const float scale : scales) sum += static_cast<double>(scale);
  return static_cast<float>(sum / static_cast<double>(scales.size()));
}

void code_scales(std::span<float> scales, float mean, int64_t block, std::span<float> outer, std::span<uint8_t> codes) {
  const auto each = static_cast<size_t>(block);
  for (size_t at = 0; at < outer.size(); ++at) {
    const size_t begin = at * each, end = std::min(scales.size(), begin + each);
    float& most = outer[at] = 0;
    for (size_t i = begin; i < end; ++i) most = std::max(most, std::fabs(scales[i] -= mean));
    for (size_t i = begin; i < end; ++i) codes[i] = nearest_code(true, most > 0 ? scales[i] / most : 0.0f);
  }
}

void load_coded(Executor& executor, const PersistentTensor& weight, const SafetensorsSet& files,
                const std::string& stored) {
  Coding(executor, weight, files, stored).run();
}

}  // namespace headroom
