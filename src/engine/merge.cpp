#include "engine/merge.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>

#include "base/bytes.h"
#include "base/error.h"
#include "engine/budget.h"
#include "engine/process_bytes.h"
#include "formats/atomic_dir.h"
#include "formats/safetensors_writer.h"
#include "weights/adapter_files.h"
#include "weights/model_files.h"
#include "weights/saved_model.h"
#include "weights/stored_codes.h"
#include "weights/stored_floats.h"
#include "weights/tied_head.h"
#include "weights/weights.h"

namespace headroom {
namespace {

namespace fs = std::filesystem;
constexpr int64_t kChunk = 1 << 18;     // elements
constexpr int64_t kHeaderBytes = 2048;  // of a tensor's entries in headers, read and written

// A and B of one weight.
struct Pair {
  std::vector<float> a, b;
  std::vector<float> magnitude;  // of DoRA: the lengths of the sum's rows
  int64_t in = 0, out = 0, rank = 0;
  double factor = 0;
};

class Merger {
 public:
  Merger(const MergeOptions& options, const ModelFiles& model, const WorkProgress& progress)
      : options_(options),
        model_(model),
        progress_(progress),
        weights_(SafetensorsSet::open(model.weights)),
        adapter_(open_adapter(options.adapter)) {
    check_weights(model.spec, weights_);
    check_tied_head(adapter_.tensors, model.spec);
    used_.insert(tied_head_in_adapter(model.spec));
  }

  // A bound on the process's memory: itself, the files' headers, a piece, and the largest pair.
  int64_t memory_bytes() const {
    int64_t largest = 0;
    for (const WeightInfo& weight : checkpoint_weights(model_.spec))
      largest = std::max(largest, pair_bytes(weight) + piece_bytes(weight));
    const auto tensors = static_cast<int64_t>(weights_.tensors().size() + adapter_.tensors.tensors().size());
    const int64_t decoded = model_.spec.weight_codes.empty() ? 0 : 2 * kChunk;  // codes and scales of a piece
    return process_parts(model_, {}, false).code + tensors * kHeaderBytes + largest + decoded + companion_bytes(model_);
  }

  void write(const fs::path& path) {
    const StoredType stored = stored_float(options_.save_dtype).value();
    const std::vector<WeightInfo> all = checkpoint_weights(model_.spec);
    SafetensorsWriter writer(path);
    for (const WeightInfo& weight : all) writer.declare(weight.name, stored, weight.shape);
    const auto total = static_cast<int64_t>(all.size());
    if (progress_) progress_(0, total);
    for (int64_t i = 0; i < total; ++i) {
      write_weight(all[static_cast<size_t>(i)], stored, writer);
      if (progress_) progress_(i + 1, total);
    }
    refuse_strangers();
    writer.finish();
  }

 private:
  // A and B, and B of all experts of a projection.
  int64_t pair_bytes(const WeightInfo& weight) const {
    constexpr auto kFloat = static_cast<int64_t>(sizeof(float));
    if (const std::optional<ExpertPair> experts = expert_pair(adapter_, weight, model_.spec.experts.count))
      return kFloat * experts->rank * (experts->in + weight.shape[0] * (experts->experts + 2));
    return weight.shape.size() == 2 ? kFloat * (adapter_.rank * (weight.shape[0] + weight.shape[1]) + weight.shape[0])
                                    : 0;
  }

  // values_, narrowed_ and sums_.
  static int64_t piece_bytes(const WeightInfo& weight) {
    const int64_t columns = weight.shape.empty() ? 1 : weight.shape.back();
    return 6 * std::max(kChunk, columns) + 8 * columns;
  }

  std::optional<Pair> pair_of(const WeightInfo& weight) {
    if (const std::optional<ExpertPair> experts = expert_pair(adapter_, weight, model_.spec.experts.count))
      return expert_pair_of(weight, *experts);
    const StoredTensor* a = adapter_.tensors.find(lora_name(weight.name, 'A'));
    const StoredTensor* b = adapter_.tensors.find(lora_name(weight.name, 'B'));
    if (!a && !b) return std::nullopt;
    used_.insert(lora_name(weight.name, 'A'));
    used_.insert(lora_name(weight.name, 'B'));
    const bool transposed = model_.spec.layout == "in_out";
    Pair pair;
    pair.rank = adapter_.rank;
    pair.factor = adapter_.factor();
    if (weight.shape.size() == 2) {
      pair.in = weight.shape[transposed ? 0 : 1];
      pair.out = weight.shape[transposed ? 1 : 0];
    }
    const std::vector<int64_t> want_a{adapter_.rank, pair.in}, want_b{pair.out, adapter_.rank};
    if (!a || !b || a->shape != want_a || b->shape != want_b)
      throw Error(ErrorKind::format,
                  fmt::format("{}: the adapter of '{}' is not [{}, {}] and [{}, {}]", adapter_.tensors.path().string(),
                              weight.name, adapter_.rank, pair.in, pair.out, adapter_.rank),
                  "the adapter belongs to another model");
    pair.a = read_floats(adapter_.tensors, *a);
    pair.b = read_floats(adapter_.tensors, *b);
    if (adapter_.decomposed) pair.magnitude = magnitude_of(weight, pair.out);
    return pair;
  }

  std::vector<float> magnitude_of(const WeightInfo& weight, int64_t out) {
    if (model_.spec.layout == "in_out")
      throw Error(ErrorKind::usage, fmt::format("use_dora: {} models store matrices [in, out]", model_.spec.family),
                  "merge it with PEFT");
    const std::string name = magnitude_name(weight.name);
    used_.insert(name);
    const StoredTensor* const stored = adapter_.tensors.find(name);
    if (!stored || stored->elements() != out)
      throw Error(
          ErrorKind::format,
          fmt::format("{}: '{}' is missing, or does not have {} elements", adapter_.tensors.path().string(), name, out),
          "the adapter belongs to another model");
    return read_floats(adapter_.tensors, *stored);
  }

  // One expert's part of a parameter's adapter.
  std::optional<Pair> expert_pair_of(const WeightInfo& weight, const ExpertPair& of) {
    const std::string module = of.module_in(adapter_);
    if (module.empty()) return std::nullopt;
    if (adapter_.decomposed)
      throw Error(ErrorKind::format, fmt::format("{}: use_dora for experts", adapter_.tensors.path().string()),
                  "merge it with PEFT");
    const StoredTensor &a = experts_tensor(module + ".lora_A.weight", of.shape_a()),
                       &b = experts_tensor(module + ".lora_B.weight", of.shape_b());
    Pair pair;
    pair.in = of.in;
    pair.out = weight.shape[0];
    pair.rank = of.rank;
    pair.factor = of.factor;
    const int64_t expert = std::stoll(of.weight.expert), columns = of.rank * of.experts;
    pair.a.resize(static_cast<size_t>(of.rank * of.in));
    read_floats(adapter_.tensors, a, expert * of.rank * of.in, pair.a);
    const int64_t first = of.weight.part == ExpertPart::up ? pair.out : 0;  // row of B
    if (const std::string rows = fmt::format("{} {}", module, first); rows != rows_of_) {
      rows_of_ = rows;
      rows_.resize(static_cast<size_t>(pair.out * columns));
      read_floats(adapter_.tensors, b, first * columns, rows_);
    }
    for (int64_t i = 0; i < pair.out * of.rank; ++i)
      pair.b.push_back(rows_[static_cast<size_t>(i * of.experts + expert)]);
    return pair;
  }

  const StoredTensor& experts_tensor(const std::string& name, const std::vector<int64_t>& shape) {
    const StoredTensor* tensor = adapter_.tensors.find(name);
    if (!tensor || tensor->shape != shape)
      throw Error(ErrorKind::format,
                  fmt::format("{}: '{}' is missing, or not of shape [{}]", adapter_.tensors.path().string(), name,
                              fmt::join(shape, ", ")),
                  "the adapter belongs to another model");
    used_.insert(name);
    return *tensor;
  }

  void write_weight(const WeightInfo& weight, StoredType stored, SafetensorsWriter& writer) {
    const std::string module = std::string(kAdapterPrefix) + transformers_name(weight.name);
    const StoredTensor* saved = adapter_.tensors.find(module);
    if (saved) used_.insert(module);
    if (saved && saved->shape != weight.shape)
      throw Error(
          ErrorKind::format,
          fmt::format("{}: '{}' has a different shape from the model's", adapter_.tensors.path().string(), module),
          "the adapter belongs to another model");
    const std::optional<Pair> pair = pair_of(weight);
    const std::optional<StoredCodes> codes = find_stored_codes(model_.spec, weights_, weight);
    int64_t count = 1;
    for (int64_t dim : weight.shape) count *= dim;
    const int64_t columns = weight.shape.empty() ? 1 : weight.shape.back();
    const int64_t step = std::max<int64_t>(1, kChunk / columns) * columns;
    for (int64_t at = 0; at < count; at += step) {
      const int64_t size = std::min(step, count - at);
      values_.resize(static_cast<size_t>(size));
      if (saved)
        read_floats(adapter_.tensors, *saved, at, values_);
      else if (codes)
        read_decoded(weights_, *codes, at, values_);
      else
        read_floats(weights_, stored_weight_name(model_.spec, weights_, weight.name), at, values_);
      if (pair) add(*pair, at / columns, size / columns);
      emit(weight.name, stored, writer);
    }
  }

  // values_ holds `rows` rows of the stored matrix from `first` on.
  void add(const Pair& pair, int64_t first, int64_t rows) {
    const bool transposed = model_.spec.layout == "in_out";
    const int64_t columns = transposed ? pair.out : pair.in;
    for (int64_t row = 0; row < rows; ++row) {
      float* into = values_.data() + row * columns;
      sums_.assign(static_cast<size_t>(columns), 0.0);
      for (int64_t r = 0; r < pair.rank; ++r) {
        const double left = transposed ? pair.a[static_cast<size_t>(r * pair.in + first + row)]
                                       : pair.b[static_cast<size_t>((first + row) * pair.rank + r)];
        for (int64_t c = 0; c < columns; ++c)
          sums_[static_cast<size_t>(c)] += left * (transposed ? pair.b[static_cast<size_t>(c * pair.rank + r)]
                                                              : pair.a[static_cast<size_t>(r * pair.in + c)]);
      }
      double squares = 0;
      for (int64_t c = 0; c < columns; ++c) {
        double& sum = sums_[static_cast<size_t>(c)];
        sum = static_cast<double>(into[c]) + pair.factor * sum;
        squares += sum * sum;
      }
      const bool scaled = !pair.magnitude.empty() && squares > 0;
      const double scale =
          scaled ? static_cast<double>(pair.magnitude[static_cast<size_t>(first + row)]) / std::sqrt(squares) : 1;
      for (int64_t c = 0; c < columns; ++c) into[c] = static_cast<float>(scale * sums_[static_cast<size_t>(c)]);
    }
  }

  void emit(const std::string& name, StoredType stored, SafetensorsWriter& writer) {
    if (stored == StoredType::f32) return writer.write(name, std::as_bytes(std::span(values_)));
    narrowed_.resize(values_.size() * static_cast<size_t>(stored_type_bytes(stored)));
    narrow_floats(values_, stored, narrowed_.data());
    writer.write(name, narrowed_);
  }

  void refuse_strangers() const {
    for (const auto& [name, tensor] : adapter_.tensors.tensors())
      if (!used_.contains(name))
        throw Error(ErrorKind::format,
                    fmt::format("{}: '{}' belongs to no weight of the model", adapter_.tensors.path().string(), name),
                    "the adapter belongs to another model");
  }

  const MergeOptions& options_;
  const ModelFiles& model_;
  const WorkProgress& progress_;
  SafetensorsSet weights_;
  AdapterFiles adapter_;
  std::set<std::string> used_;
  std::vector<float> values_;
  std::string rows_of_;      // the name of the matrix in rows_
  std::vector<float> rows_;  // of B, for all experts
  std::vector<std::byte> narrowed_;
  std::vector<double> sums_;
};

}  // namespace

void merge_adapter(const MergeOptions& options, const WorkProgress& progress) {
  if (!stored_float(options.save_dtype))
    throw Error(ErrorKind::usage, fmt::format("--save-dtype {} is not known", options.save_dtype),
                "float32, bfloat16 or float16");
  const ModelFiles model = open_model(options.model);
  if (model.directory.empty())
    throw Error(ErrorKind::usage, fmt::format("{} is a bare config.json: there are no weights", options.model.string()),
                "give the model's directory");
  refuse_quantized(model, "merge", QuantizedRule::codes_are_read);
  if (fs::exists(options.output_dir) && !fs::is_empty(options.output_dir))
    throw Error(ErrorKind::usage, fmt::format("{} is not empty", options.output_dir.string()),
                "give a fresh --output-dir");
  Merger merger(options, model, progress);
  refuse_below(options.memory, merger.memory_bytes());
  AtomicDirectory directory(options.output_dir);
  write_model_files(model, options.save_dtype, directory.path());
  merger.write(directory.path() / "model.safetensors");
  directory.commit();
}

}  // namespace headroom
