#include "engine/text_shape.h"

#include <algorithm>

#include "generate/generator.h"
#include "models/decoder.h"

namespace headroom {

std::optional<std::string> TextShape::prefill_for(const ModelSpec& spec, int64_t prompt, int64_t new_tokens) const {
  const int64_t tokens = prompt + new_tokens, wanted = prompt_chunks(prompt).front();
  if (tokens > positions || spec.rope_scaling.is_long(tokens) != spec.rope_scaling.is_long(positions)) return {};
  const auto known = std::find(chunks.begin(), chunks.end(), wanted);
  if (known != chunks.end()) return prefill_program(chunks, static_cast<size_t>(known - chunks.begin()));
  if (wanted == wanted_chunk && tokens == positions) return prefill_program(chunks, 0);  // the same plan
  return {};
}

TextShape roomy_shape(const ModelSpec& spec, int64_t tokens) {
  int64_t positions = 1024;
  while (positions < tokens) positions *= 2;
  positions = std::min(positions, spec.max_positions);
  const RopeScaling& scaling = spec.rope_scaling;
  if (scaling.is_long(positions) && !scaling.is_long(tokens)) positions = scaling.original_max_position;
  const std::vector<int64_t> chunks = prompt_chunks(positions);
  return {positions, chunks, chunks.front()};
}

}  // namespace headroom
