#include "weights/stored_codes.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/block_codes.h"
#include "base/dynamic_map.h"
#include "base/error.h"
#include "base/integer_codes.h"
#include "formats/gguf_weights.h"
#include "formats/json.h"
#include "weights/weights.h"

namespace headroom {
namespace {

constexpr int64_t kStateBytes = 4096;  // of a quant_state, at most

// Finds and checks the tensors of one weight.
class Reader {
 public:
  Reader(const ModelSpec& spec, const SafetensorsSet& files, const WeightInfo& weight)
      : spec_(spec), files_(files), weight_(weight), elements_(element_count(weight.shape)) {}

  std::optional<StoredCodes> read() {
    if (weight_.shape.size() != 2) return std::nullopt;
    if (files_.gguf()) return read_blocks();
    if (const std::optional<IntegerCodes> codes =
            integer_codes(spec_.weight_codes == "int8-int4" ? "int4" : spec_.weight_codes))
      return read_packed(*codes);
    const std::string name = stored_weight_name(spec_, files_, weight_.name);
    if (name.empty() || files_.find(name)->type != StoredType::u8) return std::nullopt;
    return read_four_bits(name);
  }

 private:
  [[noreturn]] void refuse(const std::string& tensor, const std::string& what) const {
    throw Error(ErrorKind::format, fmt::format("{}: tensor '{}' {}", files_.directory().string(), tensor, what),
                "re-download the checkpoint, or quantise it again");
  }

  // A tensor of the weight, checked for this type and number of elements.
  std::string take(const std::string& name, StoredType type, int64_t elements) {
    const StoredTensor* tensor = files_.find(name);
    if (!tensor) refuse(name, "is missing");
    if (tensor->type != type || tensor->elements() != elements)
      refuse(name, fmt::format("has {} elements of {}, not {} of {}", tensor->elements(),
                               stored_type_name(tensor->type), elements, stored_type_name(type)));
    out_.tensors.push_back(name);
    return name;
  }

  // A table of the codes' values, which must equal the known one.
  void take_table(const std::string& name, std::span<const float> known) {
    take(name, StoredType::f32, static_cast<int64_t>(known.size()));
    std::vector<float> found(known.size());
    read_floats(files_, name, 0, found);
    for (size_t i = 0; i < known.size(); ++i)
      if (!(std::fabs(found[i] - known[i]) <= 1e-6f))
        refuse(name, fmt::format("has {} for code {}, not {}", found[i], i, known[i]));
  }

  Json read_state(const std::string& name) {
    const StoredTensor* tensor = files_.find(name);
    if (!tensor) refuse(name, "is missing");
    if (tensor->type != StoredType::u8 || tensor->bytes > kStateBytes)
      refuse(name, fmt::format("has {} bytes of {}", tensor->bytes, stored_type_name(tensor->type)));
    out_.tensors.push_back(name);
    std::string text(static_cast<size_t>(tensor->bytes), '\0');
    files_.read(name, 0, std::as_writable_bytes(std::span<char>(text)));
    const Json state = parse_json(text, files_.directory().string() + ": " + name);
    if (!state.is_object()) refuse(name, "is not a JSON object");
    return state;
  }

  void require(const std::string& name, const Json& state, const char* key, const Json& wanted) const {
    const Json found = state.value(key, Json());
    if (found != wanted) refuse(name, fmt::format("says {} {}, not {}", key, found.dump(), wanted.dump()));
  }

  StoredCodes read_four_bits(const std::string& name) {
    const bool doubled = spec_.weight_codes == "nf4-dq";
    const std::string kind = doubled ? "nf4" : spec_.weight_codes;
    out_.storage = {64, 4, DType::f32, kind == "fp4" ? CodeTable::fp4 : CodeTable::nf4, doubled ? 256 : 0};
    const StorageLayout layout = storage_layout(out_.storage, elements_);
    out_.codes = take(name, StoredType::u8, code_bytes(elements_, 4));
    out_.scales = take(name + ".absmax", doubled ? StoredType::u8 : StoredType::f32, layout.scale_count);
    take_table(name + ".quant_map", code_values(out_.storage.codes));
    const std::string described = name + ".quant_state.bitsandbytes__" + kind;
    const Json state = read_state(described);
    require(described, state, "blocksize", 64);
    require(described, state, "quant_type", kind);
    require(described, state, "shape", weight_.shape);
    if (!doubled) return std::move(out_);
    out_.outer_scales = take(name + ".nested_absmax", StoredType::f32, layout.scale_scale_count);
    take_table(name + ".nested_quant_map", dynamic_map(true).value);
    require(described, state, "nested_blocksize", 256);
    const Json offset = state.value("nested_offset", Json());
    if (!offset.is_number()) refuse(described, fmt::format("says nested_offset {}", offset.dump()));
    out_.offset = offset.get<float>();
    return std::move(out_);
  }

  // Of a GGUF, in which a matrix may have another form than the layers'.
  std::optional<StoredCodes> read_blocks() {
    const std::string name = stored_weight_name(spec_, files_, weight_.name);
    const StoredTensor* const tensor = name.empty() ? nullptr : files_.find(name);
    if (!tensor || tensor->shape != weight_.shape) return std::nullopt;
    const GgmlType type = files_.gguf()->stored(tensor->file).type;
    const std::optional<int> bits = ggml_code_bits(type);
    if (!bits) return std::nullopt;
    out_.storage = {static_cast<int32_t>(ggml_block(type).elements), *bits, DType::f32, CodeTable::integer};
    out_.codes = out_.scales = name;
    out_.in_blocks = true;
    out_.tensors.push_back(name);
    return std::move(out_);
  }

  std::optional<StoredCodes> read_packed(const IntegerCodes& kind) {
    const int bits = kind.bits;
    const int64_t ins = weight_.shape[1], group = kind.group == 0 ? ins : kind.group;
    const std::string codes = stored_weight_name(spec_, files_, weight_.name + "_packed");
    if (codes.empty()) return std::nullopt;
    const std::string name = codes.substr(0, codes.size() - std::string_view("_packed").size());
    if (ins % group != 0 || ins * bits % 32 != 0) refuse(codes, fmt::format("has rows of {} elements", ins));
    out_.storage = {static_cast<int32_t>(group), bits, DType::f32, CodeTable::integer};
    out_.little_nibbles = true;
    out_.codes = take(codes, StoredType::i32, elements_ * bits / 32);
    out_.scales = name + "_scale";
    const StoredTensor* scales = files_.find(out_.scales);
    if (!scales) refuse(out_.scales, "is missing");
    take(out_.scales, scales->type == StoredType::f32 ? StoredType::f32 : StoredType::bf16, elements_ / group);
    take(name + "_shape", StoredType::i64, 2);
    return std::move(out_);
  }

  const ModelSpec& spec_;
  const SafetensorsSet& files_;
  const WeightInfo& weight_;
  int64_t elements_;
  StoredCodes out_;
};

}  // namespace

void turn_packed(int bits, std::span<std::byte> codes) {
  for (std::byte& code : codes) code = bits == 8 ? code ^ std::byte{0x80} : (code << 4) | (code >> 4);
}

std::optional<StoredCodes> find_stored_codes(const ModelSpec& spec, const SafetensorsSet& files,
                                             const WeightInfo& weight) {
  if (spec.weight_codes.empty()) return std::nullopt;
  return Reader(spec, files, weight).read();
}

namespace {

// The bytes of codes from `first` on, in the order of block_codes.h.
void read_codes(const SafetensorsSet& files, const StoredCodes& stored, int64_t first, std::span<std::byte> into) {
  if (stored.in_blocks)
    return files.gguf()->read_codes(files.at(stored.codes).file, first * 8 / stored.storage.payload_bits, into);
  files.read(stored.codes, first, into);
  if (stored.little_nibbles) turn_packed(stored.storage.payload_bits, into);
}

// Scales that are stored as plain numbers, from block `first` on.
void read_plain_scales(const SafetensorsSet& files, const StoredCodes& stored, int64_t first, std::span<float> into) {
  if (stored.in_blocks) return files.gguf()->read_scales(files.at(stored.scales).file, first, into);
  read_floats(files, stored.scales, first, into);
}

// The scales of blocks begin .. end.
std::vector<float> read_scales(const SafetensorsSet& files, const StoredCodes& stored, int64_t begin, int64_t end) {
  std::vector<float> scales(static_cast<size_t>(end - begin));
  if (stored.storage.scale_block == 0) {
    read_plain_scales(files, stored, begin, scales);
    return scales;
  }
  std::vector<uint8_t> codes(scales.size());
  files.read(stored.scales, begin, std::as_writable_bytes(std::span(codes)));
  const int64_t each = stored.storage.scale_block, first = begin / each;
  std::vector<float> outer(static_cast<size_t>((end - 1) / each - first + 1));
  read_floats(files, stored.outer_scales, first, outer);
  for (int64_t i = begin; i < end; ++i)
    scales[static_cast<size_t>(i - begin)] =
        dynamic_map(true).value[codes[static_cast<size_t>(i - begin)]] * outer[static_cast<size_t>(i / each - first)] +
        stored.offset;
  return scales;
}

}  // namespace

void read_decoded(const SafetensorsSet& files, const StoredCodes& stored, int64_t first, std::span<float> into) {
  const Storage& storage = stored.storage;
  const int64_t end = first + static_cast<int64_t>(into.size()), origin = first / 2 * 2, block = storage.block;
  std::vector<std::byte> codes(static_cast<size_t>(code_bytes(end - origin, storage.payload_bits)));
  read_codes(files, stored, code_bytes(origin, storage.payload_bits), codes);
  const std::vector<float> scales = read_scales(files, stored, first / block, (end - 1) / block + 1);
  for (int64_t at = first; at < end;) {
    const int64_t stop = std::min(end, (at / block + 1) * block);
    decode(storage.codes, storage.payload_bits, reinterpret_cast<const uint8_t*>(codes.data()),
           scales[static_cast<size_t>(at / block - first / block)], at - origin, stop - at, into.data() + (at - first));
    at = stop;
  }
}

void load_stored_codes(Executor& executor, const PersistentTensor& weight, const SafetensorsSet& files,
                       const StoredCodes& stored) {
  const Storage& storage = weight.place.type.storage;
  if (storage != stored.storage)
    throw Error(
        ErrorKind::format,
        fmt::format("{}: '{}' is stored as other codes than the plan's", files.directory().string(), weight.name),
        "leave --technique quantize-weights out: the checkpoint says how its weights are stored");
  const int64_t elements = element_count(weight.place.type.dims);
  const StorageLayout layout = storage_layout(storage, elements);
  auto* const base = executor.tensor(weight.name).as<std::byte>();
  const auto write = [&](int64_t offset, const int64_t& count, DType dtype, const auto& fill) {
    executor.write({base + offset, dtype, std::span<const int64_t>(&count, 1)}, fill);
  };
  write(0, code_bytes(elements, storage.payload_bits), DType::u8,
        [&](int64_t first, std::span<std::byte> piece) { read_codes(files, stored, first, piece); });
  const auto floats = [](std::span<std::byte> piece) {
    return std::span<float>(reinterpret_cast<float*>(piece.data()), piece.size() / sizeof(float));
  };
  if (storage.scale_block == 0) {
    write(layout.scales, layout.scale_count, DType::f32,
          [&](int64_t first, std::span<std::byte> piece) { read_plain_scales(files, stored, first, floats(piece)); });
    return;
  }
  write(layout.scales, layout.scale_count, DType::u8,
        [&](int64_t first, std::span<std::byte> piece) { files.read(stored.scales, first, piece); });
  write(layout.scale_scales, layout.scale_scale_count, DType::f32, [&](int64_t first, std::span<std::byte> piece) {
    read_floats(files, stored.outer_scales, first, floats(piece));
  });
  write(layout.scale_scales + layout.scale_scale_count * 4, 1, DType::f32,
        [&](int64_t, std::span<std::byte> piece) { std::memcpy(piece.data(), &stored.offset, sizeof(float)); });
}

void declare_packed_shape(SafetensorsWriter& writer, const PersistentTensor& weight) {
  writer.declare(weight.name + "_shape", StoredType::i64, {2});
}

void declare_packed(SafetensorsWriter& writer, const PersistentTensor& weight) {
  const std::vector<int64_t>& dims = weight.place.type.dims;
  writer.declare(weight.name + "_packed", StoredType::i32, {dims[0], dims[1] / 4});
  writer.declare(weight.name + "_scale", StoredType::f32, {dims[0], 1});
}

void write_packed_shape(SafetensorsWriter& writer, const PersistentTensor& weight) {
  writer.write(weight.name + "_shape", std::as_bytes(std::span<const int64_t>(weight.place.type.dims)));
}

void write_packed(SafetensorsWriter& writer, const PersistentTensor& weight, const Executor& executor,
                  std::span<std::byte> staging) {
  const Storage& storage = weight.place.type.storage;
  const int64_t elements = element_count(weight.place.type.dims);
  const StorageLayout layout = storage_layout(storage, elements);
  HR_CHECK(storage.payload_bits == 8 && storage.block == weight.place.type.dims[1], "{} is not in 8-bit rows",
           weight.name);
  auto* const base = executor.tensor(weight.name).as<std::byte>();
  executor.read({base, DType::u8, std::span<const int64_t>(&elements, 1)},
                [&](int64_t, std::span<const std::byte> piece) {
                  while (!piece.empty()) {
                    const std::span<std::byte> codes = staging.first(std::min(piece.size(), staging.size()));
                    std::copy_n(piece.begin(), codes.size(), codes.begin());
                    turn_packed(8, codes);
                    writer.write(weight.name + "_packed", codes);
                    piece = piece.subspan(codes.size());
                  }
                });
  executor.read({base + layout.scales, DType::f32, std::span<const int64_t>(&layout.scale_count, 1)},
                [&](int64_t, std::span<const std::byte> piece) { writer.write(weight.name + "_scale", piece); });
}

Json packed_config(int bits, int64_t group, bool token_activations) {
  const Json tokens{{"num_bits", 8}, {"type", "int"}, {"symmetric", false}, {"dynamic", true}, {"strategy", "token"}};
  const Json weights{{"num_bits", bits},
                     {"type", "int"},
                     {"symmetric", true},
                     {"dynamic", false},
                     {"strategy", group == 0 ? "channel" : "group"},
                     {"group_size", group == 0 ? Json(nullptr) : Json(group)}};
  const Json config{{"format", "pack-quantized"},
                    {"targets", Json::array({"Linear"})},
                    {"weights", weights},
                    {"input_activations", token_activations ? tokens : Json(nullptr)},
                    {"output_activations", nullptr}};
  return {{"quant_method", "compressed-tensors"},
          {"format", "pack-quantized"},
          {"quantization_status", "compressed"},
          {"ignore", Json::array({"lm_head"})},
          {"config_groups", Json{{"group_0", config}}}};
}

}  // namespace headroom
