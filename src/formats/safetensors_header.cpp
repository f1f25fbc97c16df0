#include "formats/safetensors_header.h"

#include <algorithm>
#include <array>
#include <functional>
#include <optional>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "formats/json.h"

namespace headroom {
namespace {

constexpr size_t kMaxDimensions = 16;

// Receives JSON events of the header, which shows duplicates and holds nothing but the tensors. Depth in the document:
// 1 = the header object, 2 = a tensor or the metadata, 3 = a list of a tensor.
class HeaderEvents : public nlohmann::json_sax<Json> {
 public:
  HeaderEvents(StoredTensors& tensors, const std::string& source) : tensors_(tensors), source_(source) {}

  bool start_object(std::size_t) override {
    if (depth_ == 0 || (depth_ == 1 && !name_.empty())) return enter_object();
    refuse("has an object where none belongs");
  }
  bool key(string_t& text) override {
    if (depth_ == 1) return begin_tensor(text);
    field_ = text;
    if (in_metadata_) return true;
    if (text != "dtype" && text != "shape" && text != "data_offsets")
      refuse(fmt::format("has an unknown key '{}'", text));
    if ((text == "dtype" && type_) || (text == "shape" && has_shape_) || (text == "data_offsets" && has_offsets_))
      refuse(fmt::format("has the key '{}' twice", text));
    return true;
  }
  bool end_object() override {
    if (depth_ == 2) in_metadata_ ? end_metadata() : end_tensor();
    --depth_;
    return true;
  }
  bool start_array(std::size_t) override {
    if (depth_ != 2 || in_metadata_ || (field_ != "shape" && field_ != "data_offsets"))
      refuse("has a list where none belongs");
    (field_ == "shape" ? has_shape_ : has_offsets_) = true;
    ++depth_;
    return true;
  }
  bool end_array() override {
    if (field_ == "data_offsets" && offset_count_ != 2)
      refuse(fmt::format("has {} data_offsets, not 2", offset_count_));
    --depth_;
    return true;
  }
  bool string(string_t& text) override {
    if (depth_ == 2 && in_metadata_) {
      metadata_keys_.push_back(std::hash<std::string_view>{}(field_));
      return true;
    }
    if (depth_ != 2 || field_ != "dtype") refuse(fmt::format("has the text '{}' where none belongs", text));
    type_ = stored_type_from_name(text);
    if (!type_)
      throw Error(ErrorKind::format, fmt::format("{}: tensor '{}' has the unknown dtype '{}'", source_, name_, text),
                  "convert the checkpoint to F32, F16 or BF16");
    return true;
  }
  bool number_unsigned(number_unsigned_t value) override {
    if (value > static_cast<uint64_t>(INT64_MAX))
      refuse(fmt::format("has the value {} in {}, too large", value, field_));
    return number(static_cast<int64_t>(value));
  }
  bool number_integer(number_integer_t value) override {
    refuse(fmt::format("has the negative value {} in {}", value, field_));
  }
  bool number_float(number_float_t value, const string_t&) override {
    refuse(fmt::format("has the value {} in {}, not an integer", value, field_));
  }
  bool null() override { refuse("has a null where none belongs"); }
  bool boolean(bool) override { refuse("has a boolean where none belongs"); }
  bool binary(binary_t&) override { refuse("has binary data"); }
  bool parse_error(std::size_t position, const std::string&, const Json::exception& e) override {
    const std::string_view what = e.what();
    throw Error(ErrorKind::format,
                fmt::format("{}: malformed header at byte {}: {}", source_, position + 8, what.substr(0, 200)),
                "the file is damaged or not a safetensors file; download it again");
  }

 private:
  [[noreturn]] void refuse(const std::string& problem) const {
    const std::string place = depth_ == 0    ? "the header"
                              : in_metadata_ ? "__metadata__"
                                             : fmt::format("tensor '{}'", name_);
    throw Error(ErrorKind::format, fmt::format("{}: {} {}", source_, place, problem),
                "the file is damaged or not a safetensors file; download it again");
  }

  bool enter_object() {
    if (++depth_ == 2) {
      type_.reset();
      tensor_ = StoredTensor{};
      has_shape_ = has_offsets_ = false;
      offset_count_ = 0;
    }
    return true;
  }

  bool begin_tensor(const std::string& name) {
    if (name.empty()) refuse("has an empty name");
    name_ = name;
    in_metadata_ = name == "__metadata__";
    if (in_metadata_ ? seen_metadata_ : tensors_.contains(name)) refuse("is listed twice");
    seen_metadata_ = seen_metadata_ || in_metadata_;
    return true;
  }

  bool number(int64_t value) {
    if (depth_ != 3) refuse(fmt::format("has the number {} where none belongs", value));
    if (field_ == "shape") {
      if (tensor_.shape.size() == kMaxDimensions) refuse(fmt::format("has more than {} dimensions", kMaxDimensions));
      tensor_.shape.push_back(value);
    } else {
      if (offset_count_ < 2) offsets_[offset_count_] = value;
      ++offset_count_;
    }
    return true;
  }

  void end_tensor() {
    if (!type_ || !has_shape_ || !has_offsets_)
      refuse(fmt::format("lacks its {}", !type_ ? "dtype" : !has_shape_ ? "shape" : "data_offsets"));
    int64_t bytes = stored_type_bytes(*type_);
    for (const int64_t extent : tensor_.shape)
      if (__builtin_mul_overflow(bytes, extent, &bytes))
        refuse(fmt::format("has a shape that overflows at {}", extent));
    if (offsets_[1] < offsets_[0])
      refuse(fmt::format("has data_offsets [{}, {}] that run backwards", offsets_[0], offsets_[1]));
    if (offsets_[1] - offsets_[0] != bytes)
      refuse(fmt::format("has {} bytes at data_offsets [{}, {}], its shape and dtype need {}",
                         offsets_[1] - offsets_[0], offsets_[0], offsets_[1], bytes));
    tensor_.type = *type_;
    tensor_.offset = offsets_[0];
    tensor_.bytes = bytes;
    tensors_.emplace(name_, std::move(tensor_));
  }

  void end_metadata() {
    std::sort(metadata_keys_.begin(), metadata_keys_.end());
    if (std::adjacent_find(metadata_keys_.begin(), metadata_keys_.end()) != metadata_keys_.end())
      refuse("has a key twice");
    std::vector<size_t>().swap(metadata_keys_);
  }

  StoredTensors& tensors_;
  const std::string& source_;
  int depth_ = 0;
  bool in_metadata_ = false, seen_metadata_ = false;
  std::string name_, field_;
  StoredTensor tensor_;
  std::optional<StoredType> type_;
  bool has_shape_ = false, has_offsets_ = false;
  size_t offset_count_ = 0;
  std::array<int64_t, 2> offsets_{};
  std::vector<size_t> metadata_keys_;  // hashes: there may be many
};

// Tensors ordered by their data must follow each other from 0 to the end, without holes or overlaps.
void check_layout(const StoredTensors& tensors, int64_t data_bytes, const std::string& source) {
  std::vector<const StoredTensors::value_type*> order;
  order.reserve(tensors.size());
  for (const auto& named : tensors) order.push_back(&named);
  std::sort(order.begin(), order.end(), [](const auto* a, const auto* b) {
    if (a->second.offset != b->second.offset) return a->second.offset < b->second.offset;
    return a->second.bytes != b->second.bytes ? a->second.bytes < b->second.bytes : a->first < b->first;
  });
  const auto refuse = [&](const std::string& problem) {
    throw Error(ErrorKind::format, fmt::format("{}: {}", source, problem),
                "the file is truncated or damaged; download or write it again");
  };
  int64_t end = 0;
  for (const auto* named : order) {
    const auto& [name, tensor] = *named;
    if (tensor.offset != end)
      refuse(fmt::format("tensor '{}' begins at data offset {}, {} (the one before it ends at {})", name, tensor.offset,
                         tensor.offset < end ? "an overlap" : "after a hole", end));
    end = tensor.offset + tensor.bytes;
    if (end > data_bytes)
      refuse(
          fmt::format("tensor '{}' ends at data offset {}, the file has only {} bytes of data", name, end, data_bytes));
  }
  if (end != data_bytes)
    refuse(fmt::format("the tensors end at data offset {}, the file has {} bytes of data", end, data_bytes));
}

}  // namespace

StoredTensors parse_safetensors_header(JsonCharacters& text, int64_t data_offset, int64_t data_bytes,
                                       const std::string& source) {
  StoredTensors tensors;
  HeaderEvents events(tensors, source);
  const auto refuse_zero = [&] {
    if (const std::optional<int64_t> zero = text.zero_at())
      throw Error(ErrorKind::format, fmt::format("{}: malformed header at byte {}: a zero byte", source, *zero + 8),
                  "the file is damaged or not a safetensors file; download it again");
  };
  if (text.front() != '{') {
    refuse_zero();
    throw Error(ErrorKind::format, fmt::format("{}: the header does not begin with '{{'", source),
                "this is not a safetensors file; check the path");
  }
  try {
    Json::sax_parse(text.begin(), text.end(), &events);
  } catch (const Error&) {
    refuse_zero();  // the parser may have read it as the end
    throw;
  }
  refuse_zero();
  check_layout(tensors, data_bytes, source);
  for (auto& [name, tensor] : tensors) tensor.offset += data_offset;
  return tensors;
}

}  // namespace headroom
