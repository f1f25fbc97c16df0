// Tiny models of every family that can be served, each also with its family's variants.
#pragma once

#include <vector>

#include "../models/tiny_families.h"
#include "models/model_spec.h"

namespace headroom {

inline std::vector<TinyModel> served_families() {
  std::vector<TinyModel> models;
  for (const Family& family : families())
    for (const bool varied : {false, true}) {
      TinyModel model{std::string(family.architecture) + (varied ? "Variant" : ""), tiny_config(family)};
      if (varied) model.config.merge_patch(tiny_variant(family));
      model.config["vocab_size"] = 258;
      model.config["initializer_range"] = 0.2;
      const ModelSpec spec = read_model_spec(HfConfig::parse(model.config.dump(), "c.json"));
      if (spec.objective == Objective::language) models.push_back(std::move(model));
    }
  return models;
}

}  // namespace headroom
