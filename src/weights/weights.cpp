#include "weights/weights.h"

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "base/float16.h"
#include "base/threads.h"
#include "passes/lora.h"
#include "passes/narrow_products.h"
#include "planner/request.h"
#include "weights/coded_weights.h"
#include "weights/stored_codes.h"
#include "weights/stored_floats.h"

namespace headroom {
namespace {

bool is_ignored(const ModelSpec& spec, const std::string& name) {
  if (spec.tied && name == "lm_head.weight") return true;
  return std::any_of(spec.ignored_suffixes.begin(), spec.ignored_suffixes.end(),
                     [&](const std::string& suffix) { return name.ends_with(suffix); }) ||
         std::any_of(spec.ignored_prefixes.begin(), spec.ignored_prefixes.end(),
                     [&](const std::string& prefix) { return name.starts_with(prefix); });
}

// "...LayerNorm.gamma" for "...LayerNorm.weight", "...beta" for "...bias"; empty for other names.
std::string older_name(const std::string& name) {
  for (const auto& [now, before] : {std::pair<std::string_view, const char*>{"LayerNorm.weight", "gamma"},
                                    std::pair<std::string_view, const char*>{"LayerNorm.bias", "beta"}})
    if (name.ends_with(now)) return name.substr(0, name.rfind('.') + 1) + before;
  return {};
}

std::string shape_text(const std::vector<int64_t>& shape) { return fmt::format("[{}]", fmt::join(shape, ", ")); }

// Through a buffer on the stack.
template <typename Source, typename Name>
void read_converted(const Source& source, const Name& name, StoredType type, int64_t first, std::span<float> into) {
  std::byte bytes[16384];
  const int64_t width = stored_type_bytes(type), chunk = static_cast<int64_t>(sizeof(bytes)) / width;
  const int64_t total = static_cast<int64_t>(into.size());
  for (int64_t at = 0; at < total; at += chunk) {
    const int64_t count = std::min(chunk, total - at);
    const std::span<std::byte> piece(bytes, static_cast<size_t>(count * width));
    source.read(name, (first + at) * width, piece);
    widen_floats(type, piece.data(), into.subspan(static_cast<size_t>(at), static_cast<size_t>(count)));
  }
}

// Converts from one type to another, piece by piece if both are narrow. The threads share the pieces.
void convert(StoredType type, std::span<const std::byte> from, StoredType to_type, std::byte* to) {
  constexpr int64_t kPiece = 1024, kGrain = 16 * kPiece;
  const int64_t width = stored_type_bytes(type), to_width = stored_type_bytes(to_type);
  parallel_for(static_cast<int64_t>(from.size()) / width, kGrain, [&](int64_t begin, int64_t end, int) {
    float values[kPiece];
    for (int64_t at = begin; at < end; at += kPiece) {
      const std::span<float> piece(values, static_cast<size_t>(std::min(kPiece, end - at)));
      widen_floats(type, from.data() + at * width, piece);
      narrow_floats(piece, to_type, to + at * to_width);
    }
  });
}

// Calls body(name, view) for each tensor of a checkpoint that stores the arena's tensor.
template <typename Body>
void each_part(const PersistentTensor& tensor, const TensorView& view, const Body& body) {
  if (tensor.role != Role::parameter) return body(tensor.name, view);
  std::byte* data = view.as<std::byte>();
  for (const WeightInfo& stored : stored_parts({tensor.name, {view.dims.begin(), view.dims.end()}})) {
    const TensorView part{data, view.dtype, stored.shape};
    body(stored.name, part);
    data += part.count() * dtype_bytes(part.dtype);
  }
}

}  // namespace

StoredType stored_as(DType dtype) {
  if (dtype == DType::u8) return StoredType::u8;
  if (dtype == DType::f16) return StoredType::f16;
  HR_CHECK(dtype == DType::f32 || dtype == DType::bf16, "tensors are f32, bf16, f16 or u8, not {}", dtype_name(dtype));
  return dtype == DType::bf16 ? StoredType::bf16 : StoredType::f32;
}

std::string stored_weight_name(const ModelSpec& spec, const SafetensorsSet& files, const std::string& name) {
  for (const std::string& spelling : {name, older_name(name)}) {
    if (spelling.empty()) continue;
    if (files.find(spelling)) return spelling;
    for (const std::string& prefix : spec.optional_prefixes)
      if (spelling.starts_with(prefix) && files.find(spelling.substr(prefix.size())))
        return spelling.substr(prefix.size());
  }
  return {};
}

void read_floats(const SafetensorsFile& file, const StoredTensor& tensor, int64_t first, std::span<float> into) {
  if (tensor.type != StoredType::f32 && tensor.type != StoredType::f16 && tensor.type != StoredType::bf16)
    throw Error(
        ErrorKind::format,
        fmt::format("{}: a tensor is {}, not F32, F16 or BF16", file.path().string(), stored_type_name(tensor.type)),
        "convert it");
  read_converted(file, tensor, tensor.type, first, into);
}

void read_floats(const SafetensorsSet& files, const std::string& stored, int64_t first, std::span<float> into) {
  read_converted(files, stored, files.find(stored)->type, first, into);
}

void read_tensor(Executor& executor, const SafetensorsFile& file, const StoredTensor& tensor, const TensorView& into) {
  executor.write(into, [&](int64_t first, std::span<std::byte> piece) {
    const int64_t total = static_cast<int64_t>(piece.size()) / dtype_bytes(into.dtype);
    if (into.dtype == DType::f32)
      return read_floats(file, tensor, first, {reinterpret_cast<float*>(piece.data()), static_cast<size_t>(total)});
    float values[4096];
    for (int64_t at = 0; at < total; at += static_cast<int64_t>(std::size(values))) {
      const int64_t count = std::min(static_cast<int64_t>(std::size(values)), total - at);
      read_floats(file, tensor, first + at, {values, static_cast<size_t>(count)});
      narrow_floats({values, static_cast<size_t>(count)}, stored_as(into.dtype),
                    piece.data() + at * dtype_bytes(into.dtype));
    }
  });
}

std::vector<float> read_floats(const SafetensorsFile& file, const StoredTensor& tensor) {
  std::vector<float> values(static_cast<size_t>(tensor.elements()));
  read_floats(file, tensor, 0, values);
  return values;
}

namespace {

// The checkpoint's tensor of a weight; null if a head may be missing.
const StoredTensor* checked_weight(const ModelSpec& spec, const SafetensorsSet& files, const WeightInfo& weight,
                                   HeadRule head) {
  const std::string name = stored_weight_name(spec, files, weight.name);
  if (name.empty() && weight.head && head == HeadRule::may_miss) return nullptr;
  if (name.empty())
    throw Error(ErrorKind::format, fmt::format("{}: tensor '{}' is missing", files.directory().string(), weight.name),
                weight.head ? "it belongs to the head: `train` initialises it at random and trains it"
                            : "re-download the checkpoint, or correct config.json: it asks for this tensor");
  const StoredTensor& tensor = *files.find(name);
  if (tensor.shape != weight.shape)
    throw Error(ErrorKind::format,
                fmt::format("{}: tensor '{}' has shape {}, config.json asks for {}", files.directory().string(), name,
                            shape_text(tensor.shape), shape_text(weight.shape)),
                "the checkpoint and its config.json do not belong together");
  if (tensor.type != StoredType::f32 && tensor.type != StoredType::f16 && tensor.type != StoredType::bf16)
    throw Error(ErrorKind::format,
                fmt::format("{}: tensor '{}' is {}, not F32, F16 or BF16", files.directory().string(), name,
                            stored_type_name(tensor.type)),
                "convert the checkpoint to one of these (a quantised one cannot be trained)");
  return &tensor;
}

}  // namespace

void check_weights(const ModelSpec& spec, const SafetensorsSet& files, HeadRule head) {
  std::vector<const StoredTensor*> known;
  known.reserve(files.tensors().size());
  for (const WeightInfo& whole : model_weights(spec))
    for (const WeightInfo& weight : stored_parts(whole))
      if (const std::optional<StoredCodes> codes = find_stored_codes(spec, files, weight))
        for (const std::string& name : codes->tensors) known.push_back(files.find(name));
      else if (const StoredTensor* tensor = checked_weight(spec, files, weight, head))
        known.push_back(tensor);
  std::sort(known.begin(), known.end());
  for (const auto& [name, tensor] : files.tensors())
    if (!std::binary_search(known.begin(), known.end(), &tensor) && !is_ignored(spec, name))
      throw Error(ErrorKind::format,
                  fmt::format("{}: tensor '{}' {} belongs to no part of a {} model", files.directory().string(), name,
                              shape_text(tensor.shape), spec.family),
                  "the checkpoint and its config.json do not belong together");
}

void load_tensor(Executor& executor, const TensorView& into, const SafetensorsSet& files, const std::string& stored) {
  const StoredTensor& tensor = *files.find(stored);
  HR_CHECK(tensor.elements() == into.count(), "{} differs in size from its place", stored);
  const int64_t width = stored_type_bytes(tensor.type);
  if (tensor.type == stored_as(into.dtype)) {
    executor.write(into, [&](int64_t first, std::span<std::byte> piece) { files.read(stored, first * width, piece); });
    return;
  }
  const std::span<std::byte> staging = executor.staging("load");
  const int64_t chunk = static_cast<int64_t>(staging.size()) / width;
  executor.write(into, [&](int64_t first, std::span<std::byte> piece) {
    const int64_t total = static_cast<int64_t>(piece.size()) / dtype_bytes(into.dtype);
    for (int64_t at = 0; at < total; at += chunk) {
      const std::span<std::byte> bytes = staging.first(static_cast<size_t>(std::min(chunk, total - at) * width));
      files.read(stored, (first + at) * width, bytes);
      convert(tensor.type, bytes, stored_as(into.dtype), piece.data() + at * dtype_bytes(into.dtype));
    }
  });
}

namespace {

// The checkpoint's codes, or codes computed from its numbers.
void load_codes(Executor& executor, const PersistentTensor& tensor, const ModelSpec& spec,
                const SafetensorsSet& files) {
  const WeightInfo weight{tensor.name, tensor.place.type.dims};
  if (const std::optional<StoredCodes> codes = find_stored_codes(spec, files, weight))
    return load_stored_codes(executor, tensor, files, *codes);
  if (!spec.weight_codes.empty())
    throw Error(ErrorKind::format,
                fmt::format("{}: tensor '{}' is not stored as codes, though the others are", files.directory().string(),
                            tensor.name),
                "this version reads checkpoints whose layers are quantised throughout");
  load_coded(executor, tensor, files, stored_weight_name(spec, files, tensor.name));
}

}  // namespace

void read_weights(Executor& executor, const ModelSpec& spec, const SafetensorsSet& files) {
  for (const PersistentTensor& tensor : executor.plan().tensors) {
    if (tensor.role != Role::parameter || is_weight_copy(tensor.name) || is_lora_name(tensor.name)) continue;
    if (!tensor.place.type.storage.dense()) {
      load_codes(executor, tensor, spec, files);
      continue;
    }
    each_part(tensor, executor.tensor(tensor.name), [&](const std::string& name, const TensorView& part) {
      const std::string stored = stored_weight_name(spec, files, name);
      if (!stored.empty()) load_tensor(executor, part, files, stored);
    });
  }
}

void load_weights(Executor& executor, const ModelSpec& spec, const SafetensorsSet& files) {
  read_weights(executor, spec, files);
  executor.run("load", {});
}

void write_tensor(SafetensorsWriter& writer, const std::string& name, const Executor& executor, const TensorView& view,
                  StoredType stored, std::span<std::byte> staging) {
  if (stored == stored_as(view.dtype)) {
    executor.read(view, [&](int64_t, std::span<const std::byte> piece) { writer.write(name, piece); });
    return;
  }
  const int64_t width = stored_type_bytes(stored), chunk = static_cast<int64_t>(staging.size()) / width;
  executor.read(view, [&](int64_t, std::span<const std::byte> piece) {
    const int64_t total = static_cast<int64_t>(piece.size()) / dtype_bytes(view.dtype);
    for (int64_t at = 0; at < total; at += chunk) {
      const int64_t count = std::min(chunk, total - at), from = dtype_bytes(view.dtype);
      convert(stored_as(view.dtype), piece.subspan(static_cast<size_t>(at * from), static_cast<size_t>(count * from)),
              stored, staging.data());
      writer.write(name, staging.first(static_cast<size_t>(count * width)));
    }
  });
}

void save_tensors(Executor& executor, Role role, StoredType stored, const std::filesystem::path& path) {
  SafetensorsWriter writer(path);
  const auto each = [&](const auto& body) {
    for (const PersistentTensor& tensor : executor.plan().tensors)
      if (tensor.role == role && !is_weight_copy(tensor.name) && tensor.place.type.storage.dense())
        each_part(tensor, executor.tensor(tensor.name), body);
  };
  const auto each_coded = [&](const auto& body) {
    for (const PersistentTensor& tensor : executor.plan().tensors)
      if (tensor.role == role && !tensor.place.type.storage.dense()) body(tensor);
  };
  const auto type_of = [&](const TensorView& part) { return part.dtype == DType::u8 ? StoredType::u8 : stored; };
  each_coded([&](const PersistentTensor& weight) { declare_packed_shape(writer, weight); });
  each_coded([&](const PersistentTensor& weight) { declare_packed(writer, weight); });
  each([&](const std::string& name, const TensorView& part) {
    writer.declare(name, type_of(part), {part.dims.begin(), part.dims.end()});
  });
  each_coded([&](const PersistentTensor& weight) { write_packed_shape(writer, weight); });
  each_coded([&](const PersistentTensor& weight) { write_packed(writer, weight, executor, executor.staging("save")); });
  each([&](const std::string& name, const TensorView& part) {
    write_tensor(writer, name, executor, part, type_of(part), executor.staging("save"));
  });
  writer.finish();
}

}  // namespace headroom
