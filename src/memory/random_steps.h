// Seeded random numbers for the assignment's randomised steps: the same on every machine and compiler.
#pragma once

#include <cstddef>
#include <cstdint>

namespace headroom {

// SplitMix64 (Steele, Lea, Flood 2014).
class RandomSteps {
 public:
  explicit RandomSteps(uint64_t seed) : state_(seed) {}

  uint64_t next() {
    uint64_t z = (state_ += 0x9e3779b97f4a7c15ULL);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
    return z ^ (z >> 31);
  }
  // In [0, 1).
  double fraction() { return static_cast<double>(next() >> 11) * 0x1p-53; }
  // In [0, bound), bound > 0.
  size_t below(size_t bound) { return static_cast<size_t>(next() % bound); }

 private:
  uint64_t state_;
};

}  // namespace headroom
