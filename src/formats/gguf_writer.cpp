#include "formats/gguf_writer.h"

#include <cstring>
#include <utility>

#include "base/bytes.h"
#include "base/error.h"
#include "formats/gguf_header.h"

namespace headroom {
namespace {

constexpr int64_t kAlignment = 32;

template <typename T>
std::string raw(T value) {
  std::string out(sizeof(T), '\0');
  std::memcpy(out.data(), &value, sizeof(T));
  return out;
}

std::string text_of(std::string_view value) { return raw<uint64_t>(value.size()).append(value); }

uint32_t number_of(GgufType type) { return static_cast<uint32_t>(type); }

template <typename T>
std::string array_of(GgufType type, std::span<const T> values) {
  std::string out = raw(number_of(type)) + raw<uint64_t>(values.size());
  return out.append(reinterpret_cast<const char*>(values.data()), values.size_bytes());
}

}  // namespace

void GgufWriter::entry(std::string_view key, uint32_t type, std::string_view bytes) {
  HR_CHECK(!begun_, "{} said after the first write", key);
  entries_.append(text_of(key)).append(raw(type)).append(bytes);
  ++entry_count_;
}

void GgufWriter::put(std::string_view key, uint32_t value) { entry(key, number_of(GgufType::u32), raw(value)); }
void GgufWriter::put(std::string_view key, float value) { entry(key, number_of(GgufType::f32), raw(value)); }
void GgufWriter::put(std::string_view key, bool value) {
  entry(key, number_of(GgufType::boolean), raw(static_cast<uint8_t>(value)));
}
void GgufWriter::put(std::string_view key, std::string_view value) {
  entry(key, number_of(GgufType::text), text_of(value));
}
void GgufWriter::put(std::string_view key, std::span<const std::string> values) {
  std::string bytes = raw(number_of(GgufType::text)) + raw<uint64_t>(values.size());
  for (const std::string& value : values) bytes += text_of(value);
  entry(key, number_of(GgufType::array), bytes);
}
void GgufWriter::put(std::string_view key, std::span<const int32_t> values) {
  entry(key, number_of(GgufType::array), array_of(GgufType::i32, values));
}
void GgufWriter::put(std::string_view key, std::span<const float> values) {
  entry(key, number_of(GgufType::array), array_of(GgufType::f32, values));
}

void GgufWriter::declare(std::string name, GgmlType type, const std::vector<int64_t>& shape) {
  HR_CHECK(!begun_, "tensor {} declared after the first write", name);
  const GgmlBlock block = ggml_block(type);
  HR_CHECK(!shape.empty() && shape.back() % block.elements == 0, "tensor {} has no rows of whole blocks", name);
  int64_t bytes = block.bytes;
  tensors_ += text_of(name) + raw(static_cast<uint32_t>(shape.size()));
  for (size_t i = shape.size(); i-- > 0;) {
    tensors_ += raw(static_cast<uint64_t>(shape[i]));
    bytes *= i + 1 == shape.size() ? shape[i] / block.elements : shape[i];
  }
  data_bytes_ = align_up(data_bytes_, kAlignment);
  tensors_ += raw(static_cast<uint32_t>(type)) + raw(static_cast<uint64_t>(data_bytes_));
  data_bytes_ += bytes;
  declared_.push_back({std::move(name), bytes});
}

void GgufWriter::pad() {
  const std::byte zeros[kAlignment]{};
  const int64_t end = file_.size();
  file_.append(std::span(zeros).first(static_cast<size_t>(align_up(end, kAlignment) - end)));
}

void GgufWriter::begin() {
  begun_ = true;
  const std::string prefix = "GGUF" + raw<uint32_t>(3) + raw<uint64_t>(declared_.size()) + raw(entry_count_);
  for (const std::string_view part : {std::string_view(prefix), std::string_view(entries_), std::string_view(tensors_)})
    file_.append(std::as_bytes(std::span(part)));
  entries_ = {};
  tensors_ = {};
  pad();
}

void GgufWriter::write(std::string_view name, std::span<const std::byte> chunk) {
  HR_CHECK(file_.is_open(), "write of {} after an end", name);
  if (!begun_) begin();
  if (current_ < declared_.size() && current_bytes_ == declared_[current_].bytes) {
    ++current_;
    current_bytes_ = 0;
    pad();
  }
  const auto bytes = static_cast<int64_t>(chunk.size());
  HR_CHECK(current_ < declared_.size() && declared_[current_].name == name, "tensor {} written out of order", name);
  HR_CHECK(bytes <= declared_[current_].bytes - current_bytes_, "tensor {} has more bytes than declared", name);
  file_.append(chunk);
  current_bytes_ += bytes;
}

void GgufWriter::finish() {
  HR_CHECK(file_.is_open(), "finish() after an end");
  if (!begun_) begin();
  const bool whole =
      declared_.empty() || (current_ + 1 == declared_.size() && current_bytes_ == declared_[current_].bytes);
  HR_CHECK(whole, "{} of {} tensors are written", current_, declared_.size());
  pad();
  file_.finish();
}

}  // namespace headroom
