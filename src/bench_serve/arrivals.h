// When the requests of a load arrive.
#pragma once

#include <cstdint>
#include <random>

namespace headroom::bench {

// Gaps between arrivals: Gamma of shape `burstiness` and mean 1 / rate, as vLLM's bench has it; exponential, a Poisson
// process, where burstiness is 1. An infinite rate has gaps of 0.
class Arrivals {
 public:
  Arrivals(double rate, double burstiness, uint64_t seed);
  // Seconds to the next arrival.
  double next_gap();

 private:
  bool at_once_;
  std::mt19937_64 bits_;
  std::gamma_distribution<double> gaps_;
};

}  // namespace headroom::bench
