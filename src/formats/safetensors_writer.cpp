#include "formats/safetensors_writer.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/bytes.h"
#include "base/error.h"
#include "formats/json.h"

namespace headroom {
namespace {

constexpr size_t kHeaderPiece = 16384;  // bytes of the header that memory holds at once

}  // namespace

void SafetensorsWriter::declare(std::string name, StoredType type, std::vector<int64_t> shape) {
  HR_CHECK(!begun_, "tensor {} declared after the first write", name);
  HR_CHECK(!name.empty() && name != "__metadata__", "no name for a tensor: '{}'", name);
  int64_t bytes = stored_type_bytes(type);
  for (const int64_t extent : shape)
    HR_CHECK(extent >= 0 && !__builtin_mul_overflow(bytes, extent, &bytes), "extent {} of tensor {}", extent, name);
  declared_.push_back({std::move(name), type, std::move(shape), bytes});
}

int64_t SafetensorsWriter::each_piece(const std::function<void(std::string_view)>& piece) const {
  int64_t bytes = 0, offset = 0;
  const auto add = [&](std::string_view text) {
    bytes += static_cast<int64_t>(text.size());
    piece(text);
  };
  add(R"({"__metadata__":{"format":"pt"})");
  for (const Declared& tensor : declared_) {
    add(fmt::format(R"(,{}:{{"dtype":"{}","shape":[{}],"data_offsets":[{},{}]}})", Json(tensor.name).dump(),
                    stored_type_name(tensor.type), fmt::join(tensor.shape, ","), offset, offset + tensor.bytes));
    offset += tensor.bytes;
  }
  add("}");
  add(std::string(static_cast<size_t>(align_up(bytes, 8) - bytes), ' '));
  return bytes;
}

int64_t SafetensorsWriter::file_bytes() const {
  int64_t bytes = 8 + each_piece([](std::string_view) {});
  for (const Declared& tensor : declared_) bytes += tensor.bytes;
  return bytes;
}

void SafetensorsWriter::begin() {
  std::vector<std::string_view> names;
  names.reserve(declared_.size());
  for (const Declared& tensor : declared_) names.push_back(tensor.name);
  std::sort(names.begin(), names.end());
  const auto twice = std::adjacent_find(names.begin(), names.end());
  HR_CHECK(twice == names.end(), "tensor {} declared twice", *twice);

  begun_ = true;
  std::string text(8, '\0');
  const auto length = static_cast<uint64_t>(each_piece([](std::string_view) {}));
  std::memcpy(text.data(), &length, text.size());
  const auto flush = [&] {
    file_.append(std::as_bytes(std::span(text)));
    text.clear();
  };
  each_piece([&](std::string_view piece) {
    text += piece;
    if (text.size() >= kHeaderPiece) flush();
  });
  flush();
}

void SafetensorsWriter::write(std::string_view name, std::span<const std::byte> chunk) {
  HR_CHECK(file_.is_open(), "write of {} after an end", name);
  if (!begun_) begin();
  while (current_ < declared_.size() && current_bytes_ == declared_[current_].bytes &&
         declared_[current_].name != name) {
    ++current_;
    current_bytes_ = 0;
  }
  const auto bytes = static_cast<int64_t>(chunk.size());
  HR_CHECK(current_ < declared_.size() && declared_[current_].name == name, "tensor {} written out of order", name);
  HR_CHECK(bytes <= declared_[current_].bytes - current_bytes_, "tensor {} has {} bytes, {} more than declared", name,
           current_bytes_ + bytes, current_bytes_ + bytes - declared_[current_].bytes);
  file_.append(chunk);
  current_bytes_ += bytes;
}

void SafetensorsWriter::finish() {
  HR_CHECK(file_.is_open(), "finish() after an end");
  if (!begun_) begin();
  while (current_ < declared_.size() && current_bytes_ == declared_[current_].bytes) {
    ++current_;
    current_bytes_ = 0;
  }
  HR_CHECK(current_ == declared_.size(), "tensor {} has only {} of {} bytes", declared_[current_].name, current_bytes_,
           declared_[current_].bytes);
  file_.finish();
}

}  // namespace headroom
