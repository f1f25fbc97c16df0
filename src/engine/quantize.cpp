#include "engine/quantize.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <optional>
#include <utility>

#include "base/block_codes.h"
#include "base/bytes.h"
#include "base/dynamic_map.h"
#include "base/error.h"
#include "base/integer_codes.h"
#include "base/quantization_grid.h"
#include "base/threads.h"
#include "engine/budget.h"
#include "engine/gguf_export.h"
#include "engine/process_bytes.h"
#include "formats/atomic_dir.h"
#include "formats/json.h"
#include "formats/safetensors_writer.h"
#include "models/decoder.h"
#include "passes/quantize_weights.h"
#include "weights/coded_weights.h"
#include "weights/model_files.h"
#include "weights/saved_model.h"
#include "weights/stored_codes.h"
#include "weights/weights.h"

namespace headroom {
namespace {

namespace fs = std::filesystem;
constexpr int64_t kChunk = 1 << 18;     // elements
constexpr int64_t kHeaderBytes = 4096;  // of a tensor's entries in headers, read and written

bool trained_for(const std::string& kind) { return kind.starts_with("qat-"); }

// The stored form, as named in passes/quantize_weights.h.
std::string stored_kind(const std::string& kind) {
  if (!trained_for(kind)) return kind;
  return kind == "qat-int8" ? "int8-g32" : "int4";
}

// The codes of a group of weights, as passes/qat.h rounds them, in the format of base/block_codes.h.
void encode_on_grid(int bits, float scale, std::span<const float> values, uint8_t* codes) {
  const float inverse = 1 / scale;
  for (size_t i = 0; i < values.size(); ++i) {
    const auto code = static_cast<int>(clamped_code(weight_steps(values[i], inverse), code_range(bits)));
    if (bits == 8)
      codes[i] = static_cast<uint8_t>(code);
    else if (i % 2 == 0)
      codes[i / 2] = static_cast<uint8_t>((code + 8) << 4);
    else
      codes[i / 2] = static_cast<uint8_t>(codes[i / 2] | (code + 8));
  }
}

float scale_on_grid(int bits, std::span<const float> values) {
  float most = 0;
  for (const float value : values) most = std::max(most, std::fabs(value));
  return weight_scale(most, bits);
}

// The storage of each weight that is quantized, by its name.
std::map<std::string, Storage> coded_weights(const ModelSpec& spec, const std::string& kind) {
  Graph graph = build_training_forward(spec, 1, 1);
  run_pass(kQuantizeWeights, graph, false, nullptr,
           [&](Graph& g) { quantize_weights(g, g.find_program("forward"), stored_kind(kind), nullptr); });
  std::map<std::string, Storage> coded;
  for (const Value& value : graph.values)
    if (value.persistent && !value.type.storage.dense()) coded[value.name] = value.type.storage;
  return coded;
}

// A tensor of the output.
struct Entry {
  std::string name;
  StoredType type = StoredType::u8;
  std::vector<int64_t> shape;
  std::function<void(SafetensorsWriter&)> write;
};

class Quantizer {
 public:
  Quantizer(std::string kind, const ModelFiles& model)
      : kind_(std::move(kind)),
        model_(model),
        files_(SafetensorsSet::open(model.weights)),
        coded_(coded_weights(model.spec, kind_)),
        values_(kChunk),
        bytes_(kChunk) {
    check_weights(model.spec, files_, HeadRule::may_miss);
    if (coded_.empty())
      throw Error(ErrorKind::usage, fmt::format("--weights {}: the model has no linear layers to quantise", kind_),
                  "layers that have only experts are not quantised");
  }

  // A bound on the process's memory: itself, the files' headers, a piece, and the scales of the largest matrix.
  int64_t memory_bytes() const {
    int64_t scales = 0;
    for (const WeightInfo& weight : model_weights(model_.spec))
      if (const auto at = coded_.find(weight.name); at != coded_.end())
        scales = std::max(scales, storage_layout(at->second, element_count(weight.shape)).scale_count);
    const auto tensors = static_cast<int64_t>(files_.tensors().size() * 5);
    return process_parts(model_, {}, false).code + tensors * kHeaderBytes + kChunk * 5 + scales * 9 +
           companion_bytes(model_);
  }

  void write(const fs::path& path, const WorkProgress& progress) {
    for (const auto& [name, tensor] : files_.tensors()) add_plain(name, tensor);
    for (const WeightInfo& weight : model_weights(model_.spec))
      if (coded_.contains(weight.name)) add_coded(weight);
    // Wider types first, so that every tensor begins at a multiple of its element's size.
    std::stable_sort(entries_.begin(), entries_.end(), [](const Entry& a, const Entry& b) {
      return stored_type_bytes(a.type) > stored_type_bytes(b.type);
    });
    SafetensorsWriter writer(path);
    for (const Entry& entry : entries_) writer.declare(entry.name, entry.type, entry.shape);
    const auto total = static_cast<int64_t>(entries_.size());
    if (progress) progress(0, total);
    for (int64_t i = 0; i < total; ++i) {
      entries_[static_cast<size_t>(i)].write(writer);
      if (progress) progress(i + 1, total);
    }
    writer.finish();
  }

 private:
  bool integers() const { return stored_kind(kind_).starts_with("int"); }

  void add_plain(const std::string& name, const StoredTensor& tensor) {
    for (const auto& [weight, storage] : coded_)
      if (stored_weight_name(model_.spec, files_, weight) == name) return;
    entries_.push_back({name, tensor.type, tensor.shape, [this, name, bytes = tensor.bytes](SafetensorsWriter& writer) {
                          for (int64_t at = 0; at < bytes; at += kChunk) {
                            const std::span<std::byte> piece =
                                std::span(bytes_).first(static_cast<size_t>(std::min(kChunk, bytes - at)));
                            files_.read(name, at, piece);
                            writer.write(name, piece);
                          }
                          if (bytes == 0) writer.write(name, {});
                        }});
  }

  void add(std::string name, StoredType type, std::vector<int64_t> shape,
           std::function<std::vector<std::byte>()> make) {
    entries_.push_back({name, type, std::move(shape),
                        [name, make = std::move(make)](SafetensorsWriter& writer) { writer.write(name, make()); }});
  }

  template <typename T>
  static std::vector<std::byte> bytes_of(std::span<const T> values) {
    const std::span<const std::byte> bytes = std::as_bytes(values);
    return {bytes.begin(), bytes.end()};
  }
  static std::vector<std::byte> bytes_of(const std::string& text) { return bytes_of(std::span<const char>(text)); }

  void add_coded(const WeightInfo& weight) {
    const Storage& storage = coded_.at(weight.name);
    const std::string name = stored_weight_name(model_.spec, files_, weight.name);
    const StorageLayout layout = storage_layout(storage, element_count(weight.shape));
    const auto write_codes = [this, weight, name](const std::string& to, SafetensorsWriter& writer) {
      each_codes(weight, name, [&](std::span<const std::byte> piece) { writer.write(to, piece); });
    };
    const auto scales = [this, weight, name] { return scales_of(weight, name); };
    if (integers()) {
      const int bits = storage.payload_bits;
      const std::vector<int64_t> shape = weight.shape;
      if (shape[1] * bits % 32 != 0)
        throw Error(ErrorKind::usage, fmt::format("--weights {}: rows of {} have {} elements", kind_, name, shape[1]),
                    "their codes do not fill whole words: use nf4, nf4-dq or fp4");
      entries_.push_back(
          {name + "_packed", StoredType::i32, {shape[0], shape[1] * bits / 32}, [=](SafetensorsWriter& writer) {
             write_codes(name + "_packed", writer);
           }});
      add(name + "_scale", StoredType::f32, {shape[0], shape[1] / storage.block},
          [=] { return bytes_of(std::span<const float>(scales())); });
      add(name + "_shape", StoredType::i64, {2}, [=] { return bytes_of(std::span<const int64_t>(shape)); });
      return;
    }
    entries_.push_back(
        {name, StoredType::u8, {code_bytes(element_count(weight.shape), 4), 1}, [=](SafetensorsWriter& writer) {
           write_codes(name, writer);
         }});
    add(name + ".quant_map", StoredType::f32, {16},
        [=] { return bytes_of(std::span<const float>(code_values(storage.codes))); });
    add_scales(weight, name, storage, layout);
  }

  void add_scales(const WeightInfo& weight, const std::string& name, const Storage& storage,
                  const StorageLayout& layout) {
    Json state{{"quant_type", std::string(code_table_name(storage.codes))},
               {"blocksize", storage.block},
               {"dtype", dtype_of(name)},
               {"shape", weight.shape}};
    if (storage.scale_block == 0) {
      add(name + ".absmax", StoredType::f32, {layout.scale_count},
          [=, this] { return bytes_of(std::span<const float>(scales_of(weight, name))); });
    } else {
      const auto coded = [=, this] { return coded_scales(weight, name, storage); };
      state["nested_blocksize"] = storage.scale_block;
      state["nested_dtype"] = "float32";
      state["nested_offset"] = coded().mean;
      add(name + ".absmax", StoredType::u8, {layout.scale_count},
          [=] { return bytes_of(std::span<const uint8_t>(coded().codes)); });
      add(name + ".nested_absmax", StoredType::f32, {layout.scale_scale_count},
          [=] { return bytes_of(std::span<const float>(coded().outer)); });
      add(name + ".nested_quant_map", StoredType::f32, {256},
          [] { return bytes_of(std::span<const float>(dynamic_map(true).value)); });
    }
    const std::string text = state.dump();
    add(name + ".quant_state.bitsandbytes__" + std::string(code_table_name(storage.codes)), StoredType::u8,
        {static_cast<int64_t>(text.size())}, [=] { return bytes_of(text); });
  }

  std::string dtype_of(const std::string& name) const {
    const StoredType type = files_.find(name)->type;
    return type == StoredType::bf16 ? "bfloat16" : type == StoredType::f16 ? "float16" : "float32";
  }

  // Calls body(first element, values) for pieces of whole blocks, or of whole chunks of a longer block.
  template <typename Body>
  void each_piece(const WeightInfo& weight, const std::string& name, const Body& body) {
    const int64_t total = element_count(weight.shape);
    for (int64_t at = 0; at < total; at += kChunk) {
      const std::span<float> values = std::span(values_).first(static_cast<size_t>(std::min(kChunk, total - at)));
      read_floats(files_, name, at, values);
      body(at, std::span<const float>(values));
    }
  }

  std::vector<float> scales_of(const WeightInfo& weight, const std::string& name) {
    const Storage& storage = coded_.at(weight.name);
    std::vector<float> scales(static_cast<size_t>(storage_layout(storage, element_count(weight.shape)).scale_count),
                              0.0f);
    each_piece(weight, name, [&](int64_t first, std::span<const float> values) {
      each_block_part(storage, first, values, [&](int64_t block, int64_t, std::span<const float> part) {
        float& scale = scales[static_cast<size_t>(block)];
        scale = std::max(scale, trained_for(kind_) ? scale_on_grid(storage.payload_bits, part)
                                                   : scale_of(storage.codes, storage.payload_bits, part));
      });
    });
    return scales;
  }

  // The codes of the whole matrix, in the output's format.
  template <typename Body>
  void each_codes(const WeightInfo& weight, const std::string& name, const Body& body) {
    const Storage& storage = coded_.at(weight.name);
    const int bits = storage.payload_bits;
    const std::vector<float> scales = scales_of(weight, name);
    each_piece(weight, name, [&](int64_t first, std::span<const float> values) {
      const std::span<std::byte> codes =
          std::span(bytes_).first(static_cast<size_t>(code_bytes(static_cast<int64_t>(values.size()), bits)));
      each_block_part(storage, first, values, [&](int64_t block, int64_t from, std::span<const float> part) {
        const float scale = scales[static_cast<size_t>(block)];
        uint8_t* const to = reinterpret_cast<uint8_t*>(codes.data()) + code_bytes(from - first, bits);
        trained_for(kind_) ? encode_on_grid(bits, scale, part, to) : encode(storage.codes, bits, scale, part, to);
      });
      if (integers()) turn_packed(bits, codes);
      body(std::span<const std::byte>(codes));
    });
  }

  CodedScales coded_scales(const WeightInfo& weight, const std::string& name, const Storage& storage) {
    std::vector<float> scales = scales_of(weight, name);
    CodedScales coded;
    coded.mean = mean_of(scales);
    coded.codes.resize(scales.size());
    coded.outer.resize((scales.size() + static_cast<size_t>(storage.scale_block) - 1) /
                       static_cast<size_t>(storage.scale_block));
    code_scales(scales, coded.mean, storage.scale_block, coded.outer, coded.codes);
    return coded;
  }

  std::string kind_;
  const ModelFiles& model_;
  SafetensorsSet files_;
  std::map<std::string, Storage> coded_;
  std::vector<float> values_;
  std::vector<std::byte> bytes_;
  std::vector<Entry> entries_;
};

// The metadata that transformers reads.
Json quantization_config(const std::string& kind, const std::string& dtype) {
  const std::optional<IntegerCodes> codes = integer_codes(stored_kind(kind));
  if (!codes)
    return {{"quant_method", "bitsandbytes"},
            {"load_in_4bit", true},
            {"load_in_8bit", false},
            {"bnb_4bit_quant_type", kind == "fp4" ? "fp4" : "nf4"},
            {"bnb_4bit_use_double_quant", kind == "nf4-dq"},
            {"bnb_4bit_compute_dtype", dtype},
            {"bnb_4bit_quant_storage", "uint8"}};
  return packed_config(codes->bits, codes->group, kind == "qat-int8-int4");
}

// --weights with --group-size.
std::string kind_of(const QuantizeOptions& options) {
  constexpr std::string_view kOthers[] = {"nf4", "nf4-dq", "fp4", "qat-int8-int4", "qat-int4", "qat-int8"};
  const std::string& kind = options.weights;
  const bool integers = integer_codes(kind).has_value();
  if (!integers && !gguf_type_named(kind) &&
      std::find(std::begin(kOthers), std::end(kOthers), kind) == std::end(kOthers))
    throw Error(
        ErrorKind::usage, fmt::format("--weights {} is not known", kind),
        "nf4, nf4-dq, fp4, int8 or int4; qat-int8-int4, qat-int4 or qat-int8 of a model trained with that qat; in a "
        "GGUF f16, bf16, q8_0 or q4_0");
  if (options.group_size == 0) return kind;
  if (kind != "int8" && kind != "int4")
    throw Error(ErrorKind::usage, fmt::format("--group-size {} with --weights {}", options.group_size, kind),
                integers ? "give it once" : "only int8 and int4 have groups: leave it out");
  std::string grouped = integer_codes_name({kind == "int4" ? 4 : 8, options.group_size});
  if (!integer_codes(grouped))
    throw Error(ErrorKind::usage,
                fmt::format("--group-size {} is not a multiple of 8 from 8 to 65536", options.group_size),
                "32, 64 and 128 are usual");
  return grouped;
}

std::string write_as_gguf(const QuantizeOptions& options, const ModelFiles& model, GgmlType type,
                          const WorkProgress& progress) {
  refuse_below(options.memory, gguf_export_bytes(model));
  AtomicDirectory directory(options.output_dir);
  copy_companions(model, directory.path());
  const std::string lacking = write_gguf(model, type, directory.path() / "model.gguf", progress);
  directory.commit();
  return lacking;
}

}  // namespace

std::string quantize_model(const QuantizeOptions& options, const WorkProgress& progress) {
  const std::string kind = kind_of(options);
  const ModelFiles model = open_model(options.model);
  if (model.directory.empty())
    throw Error(ErrorKind::usage, fmt::format("{} is a bare config.json: there are no weights", options.model.string()),
                "give the model's directory");
  refuse_quantized(model, "quantise");
  const std::optional<GgmlType> gguf = gguf_type_named(kind);
  if (!gguf && model.spec.layout == "in_out")
    throw Error(ErrorKind::usage, fmt::format("{} models store matrices [in, out]", model.spec.family),
                "leave the files as they are and use --technique quantize-weights with train, evaluate or generate");
  if (fs::exists(options.output_dir) && !fs::is_empty(options.output_dir))
    throw Error(ErrorKind::usage, fmt::format("{} is not empty", options.output_dir.string()),
                "give a fresh --output-dir");
  if (gguf) return write_as_gguf(options, model, *gguf, progress);
  Quantizer quantizer(kind, model);
  refuse_below(options.memory, quantizer.memory_bytes());
  AtomicDirectory directory(options.output_dir);
  write_model_files(model, model.config.dtype(), directory.path());
  quantizer.write(directory.path() / "model.safetensors", progress);
  Json config = model.config.raw;
  config["quantization_config"] = quantization_config(kind, model.config.dtype());
  write_text_durably(directory.path() / "config.json", config.dump(2) + "\n");
  directory.commit();
  return "";
}

}  // namespace headroom
