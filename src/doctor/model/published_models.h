// Geometry of popular models, from their published config.json. Data only; shape_table.cpp looks names up.
#pragma once

#include <cstdint>
#include <span>

namespace headroom::doctor {

struct PublishedModel {
  const char* name;  // lower case, without the organisation
  const char* family;
  int32_t layers, hidden, heads, kv_heads, head_dim, intermediate, vocab, max_positions;
  bool tied;
  char dtype;  // b: bfloat16, h: float16, f: float32
  int32_t experts = 0, per_token = 0, moe_intermediate = 0, shared = 0, dense = 0;
};

std::span<const PublishedModel> published_models();

}  // namespace headroom::doctor
