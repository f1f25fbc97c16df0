#include "engine/fresh_model.h"

#include <algorithm>
#include <vector>

#include "base/error.h"
#include "formats/atomic_dir.h"
#include "formats/safetensors_writer.h"
#include "models/model_spec.h"
#include "tokenizer/tokenizer.h"
#include "weights/fresh_weights.h"
#include "weights/model_files.h"
#include "weights/stored_floats.h"

namespace headroom {
namespace {

namespace fs = std::filesystem;
constexpr size_t kChunk = 1 << 18;  // elements

void write_weight(SafetensorsWriter& writer, const WeightInfo& weight, const ModelSpec& spec, uint64_t seed,
                  StoredType stored) {
  int64_t count = 1;
  for (int64_t dim : weight.shape) count *= dim;
  std::vector<float> values(kChunk);
  const auto width = static_cast<size_t>(stored_type_bytes(stored));
  std::vector<std::byte> bytes(kChunk * width);
  for (int64_t at = 0; at < count; at += static_cast<int64_t>(kChunk)) {
    const size_t size = static_cast<size_t>(std::min<int64_t>(static_cast<int64_t>(kChunk), count - at));
    draw_weight(weight, spec, seed, at, std::span(values).first(size));
    narrow_floats(std::span(values).first(size), stored, bytes.data());
    writer.write(weight.name, std::span(bytes).first(size * width));
  }
}

// Writes the tokenizer's files; refuses a tokenizer with more ids than the model has embeddings.
void write_tokenizer(const FreshModelOptions& options, const ModelSpec& spec, const fs::path& directory) {
  const bool bytes = options.tokenizer == "bytes";
  const Tokenizer tokenizer = bytes ? Tokenizer::bytes() : Tokenizer::load(options.tokenizer);
  if (tokenizer.vocab_size() > spec.vocab)
    throw Error(
        ErrorKind::usage,
        fmt::format("the tokenizer has {} ids, the model's vocab_size is {}", tokenizer.vocab_size(), spec.vocab),
        "raise vocab_size in config.json, or choose another tokenizer");
  if (!bytes) {
    copy_file_durably(options.tokenizer, directory / "tokenizer.json");
    const fs::path beside = fs::path(options.tokenizer).parent_path() / "tokenizer_config.json";
    if (fs::exists(beside)) copy_file_durably(beside, directory / "tokenizer_config.json");
    return;
  }
  write_text_durably(directory / "tokenizer.json", bytes_tokenizer_json());
  write_text_durably(
      directory / "tokenizer_config.json",
      "{\n \"tokenizer_class\": \"PreTrainedTokenizerFast\",\n \"bos_token\": \"<s>\",\n \"eos_token\": \"</s>\"\n}\n");
}

}  // namespace

void write_fresh_model(const FreshModelOptions& options) {
  const std::optional<StoredType> stored = stored_float(options.dtype);
  if (!stored)
    throw Error(ErrorKind::usage, fmt::format("--dtype {} is not known", options.dtype),
                "float32, bfloat16 or float16");
  const ModelFiles model = open_model(options.config);
  if (fs::exists(options.output_dir) && !fs::is_empty(options.output_dir))
    throw Error(ErrorKind::usage, fmt::format("{} is not empty", options.output_dir.string()),
                "give a fresh --output-dir");
  refuse_quantized(model, "make");
  AtomicDirectory directory(options.output_dir);
  write_tokenizer(options, model.spec, directory.path());
  Json config = model.config.raw;
  config[config.contains("dtype") ? "dtype" : "torch_dtype"] = options.dtype;
  write_text_durably(directory.path() / "config.json", config.dump(2) + "\n");
  SafetensorsWriter writer(directory.path() / "model.safetensors");
  const std::vector<WeightInfo> weights = checkpoint_weights(model.spec);
  for (const WeightInfo& weight : weights) writer.declare(weight.name, *stored, weight.shape);
  for (const WeightInfo& weight : weights) write_weight(writer, weight, model.spec, options.seed, *stored);
  writer.finish();
  directory.commit();
}

}  // namespace headroom
