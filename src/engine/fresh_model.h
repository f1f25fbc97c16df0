// A model with random weights, in Hugging Face layout.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

namespace headroom {

struct FreshModelOptions {
  std::filesystem::path config;     // config.json
  std::string tokenizer = "bytes";  // "bytes" or a tokenizer.json
  std::filesystem::path output_dir;
  uint64_t seed = 42;
  std::string dtype = "float32";  // or bfloat16, float16
};

// Writes the weights tensor by tensor (normal with the config's initializer_range, ones for norms, zeros for biases),
// each depending only on (seed, weight name, element); memory does not grow with the model. Throws Error.
void write_fresh_model(const FreshModelOptions& options);

}  // namespace headroom
