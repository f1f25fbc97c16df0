#include "doctor/answer/job_model.h"

#include <fmt/format.h>

#include <cctype>
#include <cmath>
#include <cstdlib>
#include <filesystem>

#include "base/bytes.h"
#include "base/error.h"
#include "base/nearest_name.h"

namespace headroom::doctor {
namespace {

namespace fs = std::filesystem;

// The shape for a model that a configuration names by a path relative to itself.
std::optional<ModelShape> shape_beside(const ConfigReading& config) {
  const std::string& model = config.job.model;
  for (const SourceRead& source : config.sources) {
    const fs::path path = fs::path(source.name).parent_path() / model;
    std::error_code status;
    if (fs::exists(path, status)) return find_model_shape(path.string());
  }
  return std::nullopt;
}

// The shape for an architecture whose keys are in the configuration itself.
std::optional<ModelShape> stated_shape(const Job& job) {
  const auto value = [&](const char* name, int64_t otherwise) {
    const auto at = job.architecture.find(name);
    return at == job.architecture.end() ? otherwise : at->second;
  };
  const int64_t hidden = value("hidden", 0), layers = value("layers", 0), heads = value("heads", 0);
  if (hidden <= 0 || layers <= 0 || heads <= 0) return std::nullopt;
  const bool neox = job.system == System::neox;
  std::string text = fmt::format(
      "{{\"model_type\": \"{}\", \"hidden_size\": {}, \"num_hidden_layers\": {}, \"num_attention_heads\": {}, "
      "\"num_key_value_heads\": {}, \"vocab_size\": {}, \"max_position_embeddings\": {}, \"intermediate_size\": {}, "
      "\"tie_word_embeddings\": false}}",
      neox ? "gpt_neox" : "llama", hidden, layers, heads, value("kv_heads", heads),
      value("vocab", neox ? 50432 : 32000), value("max_positions", 2048),
      value("intermediate", neox ? 4 * hidden : (8 * hidden / 3 + 255) / 256 * 256));
  return parse_model_shape(text, "the architecture in the configuration");
}

// "meta-llama/Some-New-13B-chat" gives 13e9. A size is a number followed by B or M, with no letter or digit on either
// side.
std::optional<double> size_in_name(const std::string& name) {
  for (size_t i = 0; i < name.size(); ++i) {
    const bool starts = std::isdigit(static_cast<unsigned char>(name[i])) &&
                        (i == 0 || !std::isalnum(static_cast<unsigned char>(name[i - 1]))) &&
                        (i == 0 || name[i - 1] != '.');
    if (!starts) continue;
    char* end = nullptr;
    const double number = std::strtod(name.c_str() + i, &end);
    const char unit = static_cast<char>(std::tolower(static_cast<unsigned char>(*end)));
    const bool ends = unit != 0 && !std::isalnum(static_cast<unsigned char>(end[1]));
    if ((unit == 'b' || unit == 'm') && ends && number > 0 && number < 1e5) return number * (unit == 'b' ? 1e9 : 1e6);
  }
  return std::nullopt;
}

// A decoder with the number of parameters that the name states.
std::optional<ModelShape> sized_shape(const std::string& name, std::vector<std::string>& notes) {
  const std::optional<double> size = size_in_name(name);
  if (!size) return std::nullopt;
  notes.push_back(
      fmt::format("{} is not in the built-in table: a decoder of {:.3g} parameters is assumed; give "
                  "--model config.json for a narrower range",
                  name, *size));
  return guess_model_shape(*size);
}

ModelShape named_shape(const std::string& name, std::vector<std::string>& notes) {
  if (std::optional<ModelShape> shape = find_model_shape(name)) return *shape;
  std::error_code status;
  if (fs::exists(name, status))
    throw Error(ErrorKind::usage, fmt::format("--model {} holds no config.json", name), "give the config.json itself");
  if (std::optional<ModelShape> shape = sized_shape(name, notes)) return *shape;
  throw Error(ErrorKind::usage,
              fmt::format("--model {} is neither a config.json nor a model of the built-in table", name),
              "give the path of its config.json, or its size alone: --params 7B");
}

}  // namespace

double parse_parameters(const std::string& text) {
  char* end = nullptr;
  double number = std::strtod(text.c_str(), &end);
  const std::string unit(end);
  double scale = 1;
  if (unit == "k" || unit == "K")
    scale = 1e3;
  else if (unit == "m" || unit == "M")
    scale = 1e6;
  else if (unit == "b" || unit == "B")
    scale = 1e9;
  else if (unit == "t" || unit == "T")
    scale = 1e12;
  else if (!unit.empty())
    number = 0;
  number *= scale;
  if (!std::isfinite(number) || number < 1e3 || number > 1e14 || end == text.c_str())
    throw Error(ErrorKind::usage, fmt::format("--params {} is not a number of parameters", text),
                "write 350M, 7B or 1.1e9");
  return number;
}

namespace {

std::optional<ModelShape> shape_of(const Request& request, const std::optional<ConfigReading>& config,
                                   std::vector<std::string>& notes) {
  if (!request.model.empty()) return named_shape(request.model, notes);
  if (!request.parameters.empty()) return guess_model_shape(parse_parameters(request.parameters));
  if (!config) return std::nullopt;
  const Job& job = config->job;
  if (!job.model.empty()) {
    if (std::optional<ModelShape> shape = shape_beside(*config)) return shape;
    if (std::optional<ModelShape> shape = find_model_shape(job.model)) return shape;
  }
  if (std::optional<ModelShape> shape = stated_shape(job)) return shape;
  if (job.parameters && *job.parameters >= 1e3) return guess_model_shape(*job.parameters);
  return sized_shape(job.model, notes);
}

}  // namespace

std::optional<ModelShape> choose_shape(const Request& request, const std::optional<ConfigReading>& config,
                                       std::vector<std::string>& notes) {
  std::optional<ModelShape> shape = shape_of(request, config, notes);
  if (!shape || !config) return shape;
  // The script trains a classifier: a few outputs instead of the vocabulary.
  const auto labels = config->job.architecture.find("labels");
  if (labels != config->job.architecture.end() && labels->second > 0) shape->labels = labels->second;
  return shape;
}

namespace {

// Lines in which programs list their environment: "GPU type: NVIDIA L40" (LLaMA-Factory), "GPU 0: NVIDIA H200"
// (PyTorch, vLLM), "accelerator(s): NVIDIA GeForce RTX 2080 Ti" (TRL), "Device 0: NVIDIA GeForce GTX 1050 Ti, compute
// capability 6.1" (llama.cpp).
std::optional<Gpu> gpu_of_environment(const std::string& log) {
  for (const std::string_view label : {"GPU type: ", "GPU 0: ", "accelerator(s): ", "CUDA device(s): ", "Device 0: "})
    for (size_t at = log.find(label); at != std::string::npos; at = log.find(label, at + 1)) {
      const size_t begin = at + label.size();
      std::string name = log.substr(begin, log.find_first_of(",\n(", begin) - begin);
      while (!name.empty() && std::isspace(static_cast<unsigned char>(name.back()))) name.pop_back();
      if (name.size() > 64) continue;
      if (std::optional<Gpu> gpu = find_gpu(name)) return gpu;
    }
  return std::nullopt;
}

}  // namespace

std::optional<Gpu> choose_gpu(const Request& request, const std::optional<ConfigReading>& config, const LogReport& log,
                              std::optional<int64_t>& capacity) {
  if (!request.gpu.empty()) {
    if (std::optional<Gpu> gpu = find_gpu(request.gpu)) return gpu;
    try {
      capacity = parse_bytes(request.gpu);
      return std::nullopt;
    } catch (const Error&) {
      std::vector<std::string> names;
      for (const Gpu& gpu : known_gpus()) names.push_back(gpu.name);
      throw Error(ErrorKind::usage, fmt::format("--gpu {} is neither a known GPU nor a size", request.gpu),
                  fmt::format("did you mean {}? A size does as well: --gpu 24GiB", nearest_name(request.gpu, names)));
    }
  }
  if (config && !config->job.devices.gpu.empty())
    if (std::optional<Gpu> gpu = find_gpu(config->job.devices.gpu)) return gpu;
  for (const GpuUsage& usage : log.resources.gpus)
    if (std::optional<Gpu> gpu = find_gpu(usage.name)) return gpu;
  return gpu_of_environment(log.excerpt);
}

}  // namespace headroom::doctor
