#include "engine/gguf_export.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <vector>

#include "base/error.h"
#include "base/threads.h"
#include "engine/gguf_vocabulary.h"
#include "engine/process_bytes.h"
#include "formats/gguf_names.h"
#include "formats/gguf_writer.h"
#include "formats/safetensors.h"
#include "models/model_spec.h"
#include "weights/weights.h"

namespace headroom {
namespace {

namespace fs = std::filesystem;
constexpr int64_t kPieceElements = 1 << 18;  // elements
constexpr int64_t kEntryBytes = 4096;        // of a tensor's entries in headers, read and written
constexpr const char* kFactors = "rope_freqs.weight";

// general.file_type, by the type of most tensors.
uint32_t file_type(GgmlType type) {
  switch (type) {
    case GgmlType::f16:
      return 1;
    case GgmlType::q4_0:
      return 2;
    case GgmlType::q8_0:
      return 7;
    case GgmlType::bf16:
      return 32;
    default:
      return 0;
  }
}

const GgufArchitecture& architecture_of(const ModelSpec& spec) {
  const GgufArchitecture* const known = gguf_architecture_of(spec.family);
  if (!known)
    throw Error(ErrorKind::usage, fmt::format("{} models are not written as GGUF", spec.family),
                "llama, mistral, qwen2 and qwen3 models are; use --weights nf4, int8 or int4 for others");
  for (const int64_t window : spec.windows)
    if (window > 0 && window < spec.max_positions)
      throw Error(ErrorKind::usage,
                  fmt::format("a GGUF of this model would lose its attention window of {} tokens", window),
                  "use --weights nf4, int8 or int4");
  return *known;
}

// The factors by which llama.cpp divides the frequency of each pair of channels; empty if there are none, or all are
// equal.
std::vector<float> rotary_factors(const ModelSpec& spec) {
  const RopeScaling& scaling = spec.rope_scaling;
  std::vector<float> factors;
  if (scaling.type == RopeType::longrope) {
    if (scaling.short_factors != scaling.long_factors || scaling.amplitude != 1)
      throw Error(ErrorKind::usage, "LongRoPE with factors that depend on the length is not written as GGUF",
                  "use --weights nf4, int8 or int4");
    factors.assign(scaling.long_factors.begin(), scaling.long_factors.end());
  }
  if (scaling.type != RopeType::llama3) return factors;
  const auto original = static_cast<double>(scaling.original_max_position);
  const double low = scaling.low_freq_factor, high = scaling.high_freq_factor;
  for (int64_t i = 0; i < spec.rotary_dim / 2; ++i) {
    const double turns =
        std::pow(spec.rope_theta, -2.0 * static_cast<double>(i) / static_cast<double>(spec.rotary_dim));
    const double wave = 2 * std::numbers::pi / turns;
    const double smooth = std::clamp((original / wave - low) / (high - low), 0.0, 1.0);
    factors.push_back(static_cast<float>(1 / ((1 - smooth) / scaling.factor + smooth)));
  }
  return factors;
}

class Exporter {
 public:
  Exporter(const ModelFiles& model, GgmlType type, const fs::path& path)
      : model_(model),
        spec_(model.spec),
        architecture_(architecture_of(model.spec)),
        type_(type),
        files_(SafetensorsSet::open(model.weights)),
        factors_(rotary_factors(model.spec)),
        folder_(path.parent_path()),
        writer_(path) {
    check_weights(spec_, files_);
  }

  std::string write(const WorkProgress& progress) {
    put_metadata();
    const std::string lacking = put_vocabulary(writer_, folder_, spec_.vocab);
    const std::vector<WeightInfo> weights = model_weights(spec_);
    if (!factors_.empty()) writer_.declare(kFactors, GgmlType::f32, {static_cast<int64_t>(factors_.size())});
    for (const WeightInfo& weight : weights) writer_.declare(name_of(weight), type_of(weight), weight.shape);
    if (!factors_.empty()) writer_.write(kFactors, std::as_bytes(std::span(factors_)));
    const auto total = static_cast<int64_t>(weights.size());
    if (progress) progress(0, total);
    for (int64_t i = 0; i < total; ++i) {
      write_weight(weights[static_cast<size_t>(i)]);
      if (progress) progress(i + 1, total);
    }
    writer_.finish();
    return lacking;
  }

 private:
  std::string key(const char* name) const { return fmt::format("{}.{}", architecture_.name, name); }
  void put_count(const char* name, int64_t value) { writer_.put(key(name), static_cast<uint32_t>(value)); }
  void put_number(const char* name, double value) { writer_.put(key(name), static_cast<float>(value)); }

  void put_metadata() {
    writer_.put("general.architecture", architecture_.name);
    writer_.put("general.type", std::string_view("model"));
    writer_.put("general.name",
                std::string_view(fs::absolute(model_.directory).lexically_normal().filename().string()));
    writer_.put("general.file_type", file_type(type_));
    writer_.put("general.quantization_version", uint32_t{2});
    put_count("vocab_size", spec_.vocab);
    put_count("context_length", spec_.max_positions);
    put_count("embedding_length", spec_.hidden);
    put_count("block_count", spec_.layers);
    put_count("feed_forward_length", spec_.intermediate);
    put_count("attention.head_count", spec_.heads);
    put_count("attention.head_count_kv", spec_.kv_heads);
    put_count("attention.key_length", spec_.head_dim);
    put_count("attention.value_length", spec_.head_dim);
    put_number("attention.layer_norm_rms_epsilon", spec_.norm_epsilon);
    put_count("rope.dimension_count", spec_.rotary_dim);
    put_number("rope.freq_base", spec_.rope_theta);
    if (spec_.rope_scaling.type != RopeType::linear) return;
    writer_.put(key("rope.scaling.type"), std::string_view("linear"));
    put_number("rope.scaling.factor", spec_.rope_scaling.factor);
  }

  std::string name_of(const WeightInfo& weight) const {
    std::string name = gguf_of_weight(weight.name);
    HR_CHECK(!name.empty(), "{} has no name in a GGUF", weight.name);
    return name;
  }

  GgmlType type_of(const WeightInfo& weight) const {
    if (weight.shape.size() < 2) return GgmlType::f32;
    return weight.shape.back() % ggml_block(type_).elements == 0 ? type_ : GgmlType::f16;
  }

  // Rows of a head that are ordered by neighbouring pairs; 0: the order does not change.
  int64_t head_rows(const WeightInfo& weight) const {
    return architecture_.paired_rows && rotary_rows(weight.name) != RotaryRows::none ? spec_.head_dim : 0;
  }

  void write_weight(const WeightInfo& weight) {
    const std::string name = name_of(weight), stored = stored_weight_name(spec_, files_, weight.name);
    const GgmlType type = type_of(weight);
    const int64_t columns = weight.shape.size() < 2 ? 1 : weight.shape.back(),
                  rows = element_count(weight.shape) / columns;
    const int64_t step = std::max<int64_t>(1, kPieceElements / columns), paired = head_rows(weight);
    for (int64_t row = 0; row < rows; row += step) {
      const int64_t count = std::min(step, rows - row);
      values_.resize(static_cast<size_t>(count * columns));
      if (paired == 0) read_floats(files_, stored, row * columns, values_);
      for (int64_t i = 0; paired != 0 && i < count; ++i)
        read_floats(files_, stored, halved_row(row + i, paired) * columns,
                    std::span(values_).subspan(static_cast<size_t>(i * columns), static_cast<size_t>(columns)));
      write_values(name, type, columns);
    }
  }

  // Whole rows of values_.
  void write_values(const std::string& name, GgmlType type, int64_t columns) {
    const GgmlBlock block = ggml_block(type);
    const auto blocks = static_cast<int64_t>(values_.size()) / block.elements;
    HR_CHECK(columns % block.elements == 0, "{} has rows of {}", name, columns);
    blocks_.resize(static_cast<size_t>(blocks * block.bytes));
    parallel_for(blocks, 512, [&](int64_t begin, int64_t end, int) {
      encode_blocks(type,
                    std::span<const float>(values_).subspan(static_cast<size_t>(begin * block.elements),
                                                            static_cast<size_t>((end - begin) * block.elements)),
                    blocks_.data() + begin * block.bytes);
    });
    writer_.write(name, blocks_);
  }

  const ModelFiles& model_;
  const ModelSpec& spec_;
  const GgufArchitecture& architecture_;
  GgmlType type_;
  SafetensorsSet files_;
  std::vector<float> factors_;
  fs::path folder_;  // with the tokenizer
  GgufWriter writer_;
  std::vector<float> values_;
  std::vector<std::byte> blocks_;
};

}  // namespace

std::optional<GgmlType> gguf_type_named(std::string_view name) {
  if (name == "f16") return GgmlType::f16;
  if (name == "bf16") return GgmlType::bf16;
  if (name == "q8_0") return GgmlType::q8_0;
  if (name == "q4_0") return GgmlType::q4_0;
  return std::nullopt;
}

std::string write_gguf(const ModelFiles& model, GgmlType type, const fs::path& path, const WorkProgress& progress) {
  return Exporter(model, type, path).write(progress);
}

int64_t gguf_export_bytes(const ModelFiles& model) {
  const auto tensors = static_cast<int64_t>(model_weights(model.spec).size());
  int64_t columns = 0;
  for (const WeightInfo& weight : model_weights(model.spec)) columns = std::max(columns, weight.shape.back());
  return process_parts(model, {}, false).code + 2 * tensors * kEntryBytes + 8 * std::max(kPieceElements, columns) +
         vocabulary_bytes(model.tokenizer);
}

}  // namespace headroom
