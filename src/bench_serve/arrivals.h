// When the requests of a load arrive.
#pragma once

#include <cstdint>
#include <random>

namespace headroom::bench {

// Gaps between arrivals: Gamma distributed with shape `burstiness` and mean 1 / rate, as in vLLM's bench. With
// burstiness 1 that is exponential, a Poisson process. With an infinite rate all gaps are 0.
class Arrivals {
 public:
  Arrivals(double rate, double burstiness, uint64_t seed);
  // Seconds until the next arrival.
  double next_gap();

 private:
  bool at_once_;
  std::mt19937_64 bits_;
  std::gamma_distribution<double> gaps_;
};

}  // namespace headroom::bench
