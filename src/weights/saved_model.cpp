#include "weights/saved_model.h"

#include <algorithm>
#include <vector>

#include "formats/atomic_dir.h"
#include "formats/file.h"
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
  each_name_in(model.directory, [&](const std::string& name) {
    if (const fs::path file = model.directory / name; is_companion(file) && is_file_there(file))
      copy_file_durably(file, directory / name);
  });
}

}  // namespace headroom
