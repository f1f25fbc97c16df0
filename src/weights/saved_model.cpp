#include "weights/saved_model.h"

#include <algorithm>
#include <vector>

#include "formats/atomic_dir.h"
#include "formats/file.h"
#include "tokenizer/tokenizer.h"
#include "tokenizer/tokenizer_files.h"
#include "tokenizer/tokenizer_place.h"
#include "weights/stored_codes.h"
#include "weights/stored_floats.h"
#include "weights/weights.h"

namespace headroom {
namespace {

namespace fs = std::filesystem;

// Small files of the source model that are copied with the weights.
bool is_companion(const fs::path& file) {
  const std::string name = file.filename().string();
  if (name == "config.json" || name.find("safetensors") != std::string::npos) return false;
  if (name == "metrics.jsonl" || name == "run.json" || name == "plan.json" || name == "state.json") return false;
  const std::string extension = file.extension().string();
  return extension == ".json" || extension == ".txt" || extension == ".model" || extension == ".jinja";
}

// Whether the model's tokenizer is inside a GGUF and can be written as files.
bool is_tokenizer_inside(const ModelFiles& model) {
  return is_gguf_tokenizer(model.tokenizer) && !is_unread_tokenizer(model.tokenizer);
}

bool are_equivalent(const fs::path& a, const fs::path& b) {
  std::error_code status;
  return fs::equivalent(a, b, status) && !status;
}

// Companions that would contradict the tokenizer inside a GGUF, which does not read them.
bool is_of_other_tokenizer(const std::string& name) {
  return name == kTokenizerFiles[1] || name == "special_tokens_map.json" || name == "added_tokens.json" ||
         name == "chat_template.jinja";
}

// The files of a tokenizer that is inside a GGUF, or of one that keep_tokenizer() wrote.
void put_tokenizer(const ModelFiles& model, const fs::path& directory) {
  if (is_tokenizer_inside(model)) return write_tokenizer_files(model.tokenizer, directory);
  if (are_equivalent(model.tokenizer, directory)) return;
  for (const char* const name : kTokenizerFiles)
    if (is_file_there(model.tokenizer / name)) copy_file_durably(model.tokenizer / name, directory / name);
}

void write_config(const ModelFiles& model, const std::string& save_dtype, const fs::path& directory,
                  const Json& quantization) {
  Json config = model.config.raw;
  config[config.contains("dtype") ? "dtype" : "torch_dtype"] = save_dtype;
  config.erase("quantization_config");
  if (!quantization.is_null()) config["quantization_config"] = quantization;
  write_text_durably(directory / "config.json", config.dump(2) + "\n");
}

}  // namespace

bool trains_codes(const Executor& executor) {
  const std::vector<PersistentTensor>& all = executor.plan().tensors;
  return std::any_of(all.begin(), all.end(), [](const PersistentTensor& tensor) {
    return tensor.role == Role::parameter && !tensor.place.type.storage.dense();
  });
}

void write_model(Executor& executor, const ModelFiles& model, const std::string& save_dtype,
                 const fs::path& directory) {
  save_tensors(executor, Role::parameter, stored_float(save_dtype).value(), directory / "model.safetensors");
  write_model_files(model, save_dtype, directory, trains_codes(executor) ? packed_config(8, 0, false) : Json());
}

void write_model_files(const ModelFiles& model, const std::string& save_dtype, const fs::path& directory,
                       const Json& quantization) {
  write_config(model, save_dtype, directory, quantization);
  copy_companions(model, directory);
}

void copy_companions(const ModelFiles& model, const fs::path& directory) {
  if (fs::equivalent(model.directory, directory)) return;
  const bool elsewhere = is_tokenizer_inside(model) ||
                         (!is_gguf_tokenizer(model.tokenizer) && !are_equivalent(model.tokenizer, model.directory));
  each_name_in(model.directory, [&](const std::string& name) {
    const fs::path file = model.directory / name;
    if (!is_companion(file) || !is_file_there(file) || (elsewhere && is_of_other_tokenizer(name))) return;
    copy_file_durably(file, directory / name);
  });
  if (elsewhere) put_tokenizer(model, directory);
}

int64_t companion_bytes(const ModelFiles& model) {
  if (!is_tokenizer_inside(model)) return 0;
  return Tokenizer::memory_bound(tokenizer_file_bytes(model.tokenizer)) + tokenizer_header_bytes(model.tokenizer);
}

void keep_tokenizer(ModelFiles& model, const fs::path& directory) {
  if (!is_tokenizer_inside(model) || are_equivalent(model.directory, directory)) return;
  write_tokenizer_files(model.tokenizer, directory);
  model.tokenizer = directory;
}

}  // namespace headroom
