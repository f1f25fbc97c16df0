// The table of families.
#pragma once

#include <span>
#include <string_view>

#include "models/model_spec.h"

namespace headroom {

struct Family {
  std::string_view model_type;    // config.json's model_type
  std::string_view architecture;  // the one class of `architectures` that is built
  void (*fill)(const HfConfig& config, ModelSpec& spec);
};

// Geometry every family shares, and the names of the Llama layout.
void fill_geometry(const HfConfig& config, ModelSpec& spec);
void fill_llama_layout(const HfConfig& config, ModelSpec& spec);

void fill_llama(const HfConfig& config, ModelSpec& spec);
void fill_qwen2(const HfConfig& config, ModelSpec& spec);
void fill_mistral(const HfConfig& config, ModelSpec& spec);
void fill_gpt2(const HfConfig& config, ModelSpec& spec);

std::span<const Family> families();

}  // namespace headroom
