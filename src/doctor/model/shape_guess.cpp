// Guesses a shape from a parameter count, with the usual proportions of dense decoders.
#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "doctor/model/model_shape.h"
#include "doctor/model/shape_count.h"

namespace headroom::doctor {
namespace {

// Layers of a published dense decoder of about this many parameters (Llama, Qwen, Pythia families).
int64_t usual_layers(double parameters) {
  struct Point {
    double parameters;
    int64_t layers;
  };
  constexpr Point points[] = {{1e8, 12},  {3.5e8, 24}, {1.2e9, 22}, {3e9, 28},   {8e9, 32},
                              {14e9, 40}, {34e9, 60},  {70e9, 80},  {4e11, 126}, {1e13, 160}};
  const Point* last = &points[0];
  for (const Point& point : points) {
    if (parameters <= point.parameters) {
      if (last == &point) return point.layers;
      const double f = std::log(parameters / last->parameters) / std::log(point.parameters / last->parameters);
      return last->layers + std::llround(f * static_cast<double>(point.layers - last->layers));
    }
    last = &point;
  }
  return last->layers;
}

}  // namespace

ModelShape guess_model_shape(double parameters) {
  HR_CHECK(parameters > 0 && std::isfinite(parameters), "parameters {}", parameters);
  ModelShape s;
  s.name = fmt::format("a decoder of {:.3g} parameters", parameters);
  s.family = "llama";
  s.guessed = true;
  s.stored_dtype = "bfloat16";
  s.layers = usual_layers(parameters);
  s.vocab = parameters < 5e6 ? 4096 : parameters < 1e9 ? 50304 : 128256;
  s.tied = parameters < 4e9;
  // parameters = layers x 12 h^2 + tables x vocab x h, solved for h.
  const double tables = (s.tied ? 1.0 : 2.0) * static_cast<double>(s.vocab),
               cube = 12.0 * static_cast<double>(s.layers);
  const double width = (-tables + std::sqrt(tables * tables + 4 * cube * parameters)) / (2 * cube);
  s.hidden = std::max<int64_t>(64, std::llround(width / 64) * 64);
  s.head_dim = s.hidden >= 2048 ? 128 : 64;
  s.heads = std::max<int64_t>(1, s.hidden / s.head_dim);
  s.kv_heads = parameters >= 1e9 && s.heads % 8 == 0 ? 8 : s.heads;
  s.max_positions = 8192;
  s.intermediate = 0;
  const FamilyFacts& facts = facts_or_llama(s.family);
  count_parameters(s, facts, {});
  const double left = (parameters - s.parameters) / static_cast<double>(s.layers) / (3 * static_cast<double>(s.hidden));
  s.intermediate = std::max<int64_t>(s.hidden, std::llround(left / 64) * 64);
  count_parameters(s, facts, {});
  const double scale = parameters / s.parameters;  // makes the total equal to the given count
  s.layer_parameters *= scale;
  s.linear_parameters *= scale;
  s.embedding_parameters *= scale;
  s.parameters = s.active_parameters = parameters;
  return s;
}

}  // namespace headroom::doctor
