#include <cmath>
#include <numbers>

#include "ops/rotary/factors.h"
#include "ops/rotary/frequencies.h"

namespace headroom {
namespace {

struct Llama3 {
  float factor;
  double low;
  double high;
  double positions;

  explicit Llama3(const Attrs& attrs)
      : factor(static_cast<float>(attrs.real("factor"))),
        low(attrs.real("low_freq_factor")),
        high(attrs.real("high_freq_factor")),
        positions(static_cast<double>(attrs.integer("original_positions"))) {}

  float scale(float frequency) const {
    const float wavelength = static_cast<float>(2 * std::numbers::pi) / frequency;
    const bool is_long = wavelength > static_cast<float>(positions / low);
    const bool is_short = wavelength < static_cast<float>(positions / high);
    const float scaled = is_long ? frequency / factor : frequency;
    if (is_long || is_short) return scaled;
    const float ratio = static_cast<float>(positions) / wavelength;
    const float smooth = (ratio - static_cast<float>(low)) / static_cast<float>(high - low);
    return (1.0f - smooth) * scaled / factor + smooth * scaled;
  }
};

}  // namespace

std::vector<float> inverse_frequencies(const Attrs& attrs) {
  const int64_t width = attrs.integer("head_dim");
  const float theta = static_cast<float>(attrs.real("theta"));
  const std::string_view scaling = attrs.text("scaling", "default");
  const std::vector<double> factors = scaling == "longrope" ? longrope_factors(attrs) : std::vector<double>();
  std::vector<float> frequencies;
  for (int64_t i = 0; i < width; i += 2) {
    const float exponent = static_cast<float>(i) / static_cast<float>(width);
    float frequency = 1.0f / std::pow(theta, exponent);
    if (!factors.empty())
      frequency = 1.0f / (static_cast<float>(factors[static_cast<size_t>(i / 2)]) * std::pow(theta, exponent));
    if (scaling == "linear") frequency /= static_cast<float>(attrs.real("factor"));
    if (scaling == "llama3") frequency = Llama3(attrs).scale(frequency);
    frequencies.push_back(frequency);
  }
  return frequencies;
}

}  // namespace headroom
