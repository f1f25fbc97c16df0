// Any adapter_config.json with any adapter_model.safetensors gives options that the model accepts, or an Error. The
// input: the length of the config in two bytes, the config, the tensors' file. An input without a file gets one with
// the matrices of a projection, with the rank in the first byte of the length.
#include <unistd.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "base/error.h"
#include "weights/adapter_files.h"

namespace {

namespace fs = std::filesystem;
using namespace headroom;

constexpr const char* kModel = R"({"architectures": ["LlamaForCausalLM"], "model_type": "llama", "vocab_size": 16,
 "hidden_size": 8, "intermediate_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "num_key_value_heads": 1,
 "max_position_embeddings": 32, "rms_norm_eps": 1e-5, "hidden_act": "silu", "tie_word_embeddings": true})";

void write(const fs::path& file, const std::string& text) { std::ofstream(file, std::ios::binary) << text; }

std::string default_tensors(int64_t rank) {
  const std::string prefix = "base_model.model.model.layers.0.self_attn.q_proj.lora_";
  const int64_t bytes = rank * 8 * 4;
  const std::string header =
      fmt::format(R"({{"{0}A.weight":{{"dtype":"F32","shape":[{1},8],"data_offsets":[0,{2}]}},)"
                  R"("{0}B.weight":{{"dtype":"F32","shape":[8,{1}],"data_offsets":[{2},{3}]}}}})",
                  prefix, rank, bytes, 2 * bytes);
  std::string length(8, '\0');
  for (size_t i = 0; i < 2; ++i) length[i] = static_cast<char>(header.size() >> (8 * i));
  return length + header + std::string(static_cast<size_t>(2 * bytes), '\0');
}

void read(const fs::path& directory, const ModelSpec& model) {
  is_adapter_directory(directory);
  try {
    base_of_adapter(directory);
  } catch (const Error&) {
  }
  const AdapterFiles adapter = open_adapter(directory);
  if (adapter.rank < 1 || !std::isfinite(adapter.factor())) abort();
  const LoraOptions options = lora_options(adapter, model);
  if (options.targets.size() + options.modules_to_save.size() > adapter.tensors.tensors().size()) abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) return 0;
  static const fs::path directory = fs::temp_directory_path() / ("headroom-adapter-fuzz-" + std::to_string(::getpid()));
  static const ModelSpec model = read_model_spec(HfConfig::parse(kModel, "model"));
  fs::create_directories(directory);
  const std::string text(reinterpret_cast<const char*>(data + 2), size - 2);
  const size_t length = std::min<size_t>(text.size(), data[0] + size_t{256} * data[1]);
  write(directory / "adapter_config.json", text.substr(0, length));
  write(directory / "adapter_model.safetensors",
        length < text.size() ? text.substr(length) : default_tensors(1 + data[0] % 8));
  try {
    read(directory, model);
  } catch (const Error&) {
  }
  return 0;
}
