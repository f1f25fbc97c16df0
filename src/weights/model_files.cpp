#include "weights/model_files.h"

#include <algorithm>

#include "base/error.h"
#include "formats/gguf_file.h"
#include "tokenizer/tokenizer_place.h"

namespace headroom {
namespace {

bool looks_like_hub_id(const std::string& text) {
  const size_t slash = text.find('/');
  return slash != std::string::npos && slash > 0 && text.find('/', slash + 1) == std::string::npos && text[0] != '.' &&
         text.find(".json") == std::string::npos;
}

}  // namespace

int64_t own_header_bytes(const ModelSpec& spec) {
  constexpr int64_t kEntry = 144;  // per tensor, in addition to its name
  int64_t bytes = 0;
  for (const WeightInfo& weight : model_weights(spec)) {
    const int64_t parts = weight.name.find('*') == std::string::npos ? 1 : spec.experts.count;
    bytes += std::max<int64_t>(parts, 2) * (static_cast<int64_t>(weight.name.size()) + kEntry);
  }
  return bytes;
}

int64_t most_own_header_bytes(const ModelSpec& spec) { return 2 * own_header_bytes(spec); }

ModelFiles open_model(const std::filesystem::path& model) {
  std::error_code status;
  if (!std::filesystem::exists(model, status)) {
    const bool hub = looks_like_hub_id(model.string());
    throw Error(ErrorKind::usage, fmt::format("there is no model at '{}'", model.string()),
                hub ? "this looks like a Hub id: download the repository first and give its directory"
                    : "give a model directory (config.json, *.safetensors), a .gguf or a config.json");
  }
  ModelFiles files;
  if (std::filesystem::is_directory(model, status)) files.directory = model;
  if (status && status != std::errc::no_such_file_or_directory)
    throw Error(ErrorKind::run, fmt::format("{}: {}", model.string(), status.message()),
                "check that the model's folder can be read");
  if (!std::filesystem::exists(model / "config.json", status) &&
      std::filesystem::exists(model / "adapter_config.json", status))
    throw Error(
        ErrorKind::usage, fmt::format("{} holds an adapter, not a model", model.string()),
        "give its base model here; `generate` and `evaluate` take --adapter, and `headroom merge` makes one model of "
        "both");
  files.weights = gguf_of_model(model);
  const bool gguf = !files.weights.empty();
  if (!gguf) files.weights = files.directory;
  if (gguf && files.directory.empty()) files.directory = model.has_parent_path() ? model.parent_path() : ".";
  files.config = HfConfig::read(gguf ? files.weights : model);
  files.spec = read_model_spec(files.config);
  files.tokenizer = gguf ? tokenizer_place(files.weights) : files.directory;
  return files;
}

void refuse_quantized(const ModelFiles& model, std::string_view purpose, QuantizedRule rule) {
  if (model.spec.quantization.empty()) return;
  if (rule == QuantizedRule::codes_are_read && !model.spec.weight_codes.empty()) return;
  throw Error(ErrorKind::usage,
              fmt::format("{} is quantised with {}: this version cannot {} it", model.config.source.string(),
                          model.spec.quantization, purpose),
              "use the checkpoint in F32, F16 or BF16");
}

}  // namespace headroom
