#include "formats/gguf_header.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <set>

#include "base/bytes.h"
#include "base/error.h"

namespace headroom {
namespace {

constexpr int64_t kPrefix = 24;                      // magic, version, counts
constexpr int64_t kMostElements = int64_t{1} << 50;  // elements of a tensor
constexpr uint64_t kMostAlignment = 1 << 20;

// Reads a source in order, through a buffer.
class Cursor {
 public:
  explicit Cursor(const ByteSource& source, int64_t offset = 0) : source_(source), at_(offset) {}

  int64_t offset() const { return at_; }
  int64_t left() const { return source_.size - at_; }

  [[noreturn]] void refuse(const std::string& what, int64_t offset) const {
    throw Error(ErrorKind::format, fmt::format("{}: {}, at byte {}", source_.name, what, offset),
                "the file is truncated or not a GGUF; download it again");
  }

  void need(int64_t bytes, std::string_view what) const {
    if (bytes > left()) refuse(fmt::format("{} ends beyond the file's {} bytes", what, source_.size), at_);
  }

  template <typename T>
  T take(std::string_view what) {
    T value;
    copy(std::as_writable_bytes(std::span(&value, 1)), what);
    return value;
  }

  std::string text(int64_t most, std::string_view what) {
    const int64_t begin = at_;
    const auto length = take<uint64_t>(what);
    if (length > static_cast<uint64_t>(most))
      refuse(fmt::format("{} announces {} bytes of text, more than the limit of {}", what, length, most), begin);
    std::string out(static_cast<size_t>(length), '\0');
    copy(std::as_writable_bytes(std::span<char>(out)), what);
    return out;
  }

  void skip(int64_t bytes, std::string_view what) {
    need(bytes, what);
    at_ += bytes;
  }
  void skip_text(std::string_view what) {
    const int64_t begin = at_;
    const auto length = take<uint64_t>(what);
    if (length > static_cast<uint64_t>(left()))
      refuse(fmt::format("{} announces {} bytes of text, {} are left", what, length, left()), begin);
    at_ += static_cast<int64_t>(length);
  }

 private:
  void copy(std::span<std::byte> into, std::string_view what) {
    need(static_cast<int64_t>(into.size()), what);
    while (!into.empty()) {
      if (at_ < begin_ || at_ >= end_) fill();
      const auto count = std::min<int64_t>(static_cast<int64_t>(into.size()), end_ - at_);
      std::memcpy(into.data(), buffer_.data() + (at_ - begin_), static_cast<size_t>(count));
      into = into.subspan(static_cast<size_t>(count));
      at_ += count;
    }
  }

  void fill() {
    const int64_t count = std::min<int64_t>(static_cast<int64_t>(buffer_.size()), source_.size - at_);
    source_.read(at_, std::span(buffer_).first(static_cast<size_t>(count)));
    begin_ = at_;
    end_ = at_ + count;
  }

  const ByteSource& source_;
  int64_t at_;
  int64_t begin_ = 0, end_ = 0;  // the part of the source in the buffer
  std::array<std::byte, 16384> buffer_;
};

int64_t type_bytes(GgufType type) {
  switch (type) {
    case GgufType::u8:
    case GgufType::i8:
    case GgufType::boolean:
      return 1;
    case GgufType::u16:
    case GgufType::i16:
      return 2;
    case GgufType::u32:
    case GgufType::i32:
    case GgufType::f32:
      return 4;
    case GgufType::u64:
    case GgufType::i64:
    case GgufType::f64:
      return 8;
    case GgufType::text:
    case GgufType::array:
      return 0;
  }
  return 0;
}

GgufType take_type(Cursor& at, const std::string& what) {
  const int64_t begin = at.offset();
  const auto number = at.take<uint32_t>(what);
  if (number > static_cast<uint32_t>(GgufType::f64)) at.refuse(fmt::format("{} has type {}", what, number), begin);
  return static_cast<GgufType>(number);
}

Json take_number(Cursor& at, GgufType type, std::string_view what) {
  switch (type) {
    case GgufType::u8:
      return at.take<uint8_t>(what);
    case GgufType::i8:
      return at.take<int8_t>(what);
    case GgufType::u16:
      return at.take<uint16_t>(what);
    case GgufType::i16:
      return at.take<int16_t>(what);
    case GgufType::u32:
      return at.take<uint32_t>(what);
    case GgufType::i32:
      return at.take<int32_t>(what);
    case GgufType::f32:
      return static_cast<double>(at.take<float>(what));
    case GgufType::boolean:
      return at.take<uint8_t>(what) != 0;
    case GgufType::u64:
      return at.take<uint64_t>(what);
    case GgufType::i64:
      return at.take<int64_t>(what);
    case GgufType::f64:
      return at.take<double>(what);
    case GgufType::text:
    case GgufType::array:
      break;
  }
  throw_internal(__FILE__, __LINE__, "a number", fmt::format("type {}", static_cast<uint32_t>(type)));
}

GgufArray take_array(Cursor& at, const std::string& what) {
  const int64_t begin = at.offset();
  GgufArray array;
  array.type = take_type(at, what);
  if (array.type == GgufType::array) at.refuse(fmt::format("{} is an array of arrays", what), begin);
  const auto count = at.take<uint64_t>(what);
  const int64_t each = array.type == GgufType::text ? 8 : type_bytes(array.type);  // a text has at least its length
  if (count > static_cast<uint64_t>(at.left() / each))
    at.refuse(fmt::format("{} announces {} elements, more than the file has bytes for", what, count), begin);
  array.count = static_cast<int64_t>(count);
  array.offset = at.offset();
  if (array.type != GgufType::text)
    at.skip(array.count * each, what);
  else
    for (int64_t i = 0; i < array.count; ++i) at.skip_text(what);
  array.bytes = at.offset() - array.offset;
  return array;
}

// Reads and checks magic and version; returns the counts of tensors and of metadata entries.
std::pair<int64_t, int64_t> take_prefix(Cursor& at) {
  if (at.take<std::array<char, 4>>("the header") != std::array{'G', 'G', 'U', 'F'}) at.refuse("is not a GGUF", 0);
  const auto version = at.take<uint32_t>("the header");
  if (version != 2 && version != 3)
    at.refuse(fmt::format("is of version {}{}, not 2 or 3", version,
                          (version & 0xffffu) == 0 && version != 0 ? " or big-endian" : ""),
              4);
  const auto tensors = at.take<uint64_t>("the header"), entries = at.take<uint64_t>("the header");
  if (tensors > kMostGgufEntries) at.refuse(fmt::format("announces {} tensors", tensors), 8);
  if (entries > kMostGgufEntries) at.refuse(fmt::format("announces {} metadata entries", entries), 16);
  return {static_cast<int64_t>(tensors), static_cast<int64_t>(entries)};
}

void take_entries(Cursor& at, int64_t count, GgufHeader& out) {
  int64_t kept = 0;
  for (int64_t i = 0; i < count; ++i) {
    const int64_t begin = at.offset();
    const std::string key = at.text(kMostGgufName, fmt::format("the key of metadata entry {}", i));
    const std::string what = fmt::format("the metadata entry '{}'", key);
    if (out.values.contains(key) || out.arrays.contains(key)) at.refuse(what + " appears twice", begin);
    const GgufType type = take_type(at, what);
    if (type == GgufType::array) {
      out.arrays[key] = take_array(at, what);
    } else if (type == GgufType::text) {
      std::string text = at.text(kMostGgufText - kept, what);
      kept += static_cast<int64_t>(text.size());
      out.values[key] = std::move(text);
    } else {
      out.values[key] = take_number(at, type, what);
    }
  }
}

// Reads name, shape, type and offset; the offset counts from the start of the data.
GgufTensor take_tensor(Cursor& at, int64_t index) {
  GgufTensor tensor;
  const int64_t begin = at.offset();
  tensor.name = at.text(kMostGgufName, fmt::format("the name of tensor {}", index));
  const std::string what = fmt::format("tensor '{}'", tensor.name);
  const auto dimensions = at.take<uint32_t>(what);
  if (dimensions < 1 || dimensions > 4) at.refuse(fmt::format("{} has {} dimensions", what, dimensions), begin);
  int64_t elements = 1;
  for (uint32_t i = 0; i < dimensions; ++i) {
    const auto dim = at.take<uint64_t>(what);
    if (dim < 1 || dim > static_cast<uint64_t>(kMostElements / elements))
      at.refuse(fmt::format("{} has a dimension of {}", what, dim), begin);
    elements *= static_cast<int64_t>(dim);
    tensor.shape.insert(tensor.shape.begin(), static_cast<int64_t>(dim));
  }
  const auto number = at.take<uint32_t>(what);
  const std::optional<GgmlType> type = ggml_type(number);
  if (!type)
    throw Error(ErrorKind::format,
                fmt::format("{} is {}, at byte {}: this version reads F32, F16, BF16, Q8_0, Q4_0, Q4_K and Q6_K", what,
                            ggml_type_name(number), begin),
                "use a file of these types, or quantise the original again");
  tensor.type = *type;
  const GgmlBlock block = ggml_block(*type);
  if (tensor.shape.back() % block.elements != 0)
    at.refuse(fmt::format("{} is {} with rows of {} elements, not a multiple of {}", what, ggml_type_name(*type),
                          tensor.shape.back(), block.elements),
              begin);
  tensor.bytes = elements / block.elements * block.bytes;
  const auto offset = at.take<uint64_t>(what);
  if (offset > static_cast<uint64_t>(kMostElements)) at.refuse(fmt::format("{} has offset {}", what, offset), begin);
  tensor.offset = static_cast<int64_t>(offset);
  return tensor;
}

int64_t alignment_of(const Cursor& at, const GgufHeader& header) {
  const auto found = header.values.find("general.alignment");
  if (found == header.values.end()) return 32;
  const Json& value = found->second;
  const uint64_t alignment = value.is_number_unsigned() ? value.get<uint64_t>() : 0;
  if (alignment < 1 || alignment > kMostAlignment || (alignment & (alignment - 1)) != 0)
    at.refuse(fmt::format("general.alignment is {}, not a power of two", value.dump()), at.offset());
  return static_cast<int64_t>(alignment);
}

// Makes the offsets count from the start of the file; checks that tensors are aligned, inside the file and do not
// overlap.
void place_tensors(const Cursor& at, GgufHeader& header) {
  const int64_t alignment = alignment_of(at, header), data = align_up(at.offset(), alignment);
  const int64_t size = at.offset() + at.left();
  std::vector<const GgufTensor*> by_offset;
  std::set<std::string_view> names;
  for (GgufTensor& tensor : header.tensors) {
    const auto refuse = [&](const std::string& what) {
      at.refuse(fmt::format("tensor '{}' {}", tensor.name, what), data + tensor.offset);
    };
    if (!names.insert(tensor.name).second) refuse("appears twice");
    if (tensor.offset % alignment != 0) refuse(fmt::format("has an offset that is not a multiple of {}", alignment));
    if (data > size || tensor.offset > size - data || tensor.bytes > size - data - tensor.offset)
      refuse(fmt::format("of {} bytes ends beyond the file's {} bytes", tensor.bytes, size));
    tensor.offset += data;
    by_offset.push_back(&tensor);
  }
  std::sort(by_offset.begin(), by_offset.end(),
            [](const GgufTensor* a, const GgufTensor* b) { return a->offset < b->offset; });
  for (size_t i = 1; i < by_offset.size(); ++i)
    if (by_offset[i - 1]->offset + by_offset[i - 1]->bytes > by_offset[i]->offset)
      at.refuse(fmt::format("tensor '{}' overlaps '{}'", by_offset[i]->name, by_offset[i - 1]->name),
                by_offset[i]->offset);
}

}  // namespace

int64_t GgufTensor::elements() const {
  int64_t count = 1;
  for (const int64_t dim : shape) count *= dim;
  return count;
}

const GgufTensor* GgufHeader::find(std::string_view name) const {
  const auto at = std::find_if(tensors.begin(), tensors.end(), [&](const GgufTensor& t) { return t.name == name; });
  return at == tensors.end() ? nullptr : &*at;
}

GgufHeader parse_gguf_header(const ByteSource& source) {
  Cursor at(source);
  const auto [tensors, entries] = take_prefix(at);
  GgufHeader header;
  take_entries(at, entries, header);
  for (int64_t i = 0; i < tensors; ++i) header.tensors.push_back(take_tensor(at, i));
  place_tensors(at, header);
  return header;
}

int64_t gguf_table_bytes(const ByteSource& source) {
  constexpr int64_t kEntry = 640;  // bytes of a metadata entry, or of a tensor here or in the table made from it
  if (source.size < kPrefix) return 0;
  try {
    Cursor at(source);
    const auto [tensors, entries] = take_prefix(at);
    return (2 * tensors + entries) * kEntry + 2 * kMostGgufText;
  } catch (const Error&) {
    return 0;
  }
}

void each_gguf_text(const ByteSource& source, const GgufArray& array,
                    const std::function<void(int64_t, std::string_view)>& text) {
  Cursor at(source, array.offset);
  if (array.type != GgufType::text) at.refuse("an array has elements that are not texts", array.offset);
  for (int64_t i = 0; i < array.count; ++i) text(i, at.text(kMostGgufText, "a text of an array"));
}

void each_gguf_number(const ByteSource& source, const GgufArray& array,
                      const std::function<void(int64_t, double)>& number) {
  Cursor at(source, array.offset);
  if (type_bytes(array.type) == 0 || array.type == GgufType::boolean)
    at.refuse("an array has elements that are not numbers", array.offset);
  for (int64_t i = 0; i < array.count; ++i)
    number(i, take_number(at, array.type, "a number of an array").get<double>());
}

}  // namespace headroom
