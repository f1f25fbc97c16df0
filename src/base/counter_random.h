// Random numbers as functions of a counter: they do not depend on the order of calls or the number of threads.
#pragma once

#include <cstdint>
#include <string_view>

namespace headroom {

// A bijection of 64 bits that scrambles them (SplitMix64's step and finaliser; Steele, Lea & Flood 2014).
constexpr uint64_t mix64(uint64_t x) {
  x += 0x9e3779b97f4a7c15ull;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
  return x ^ (x >> 31);
}

// The top 53 bits as a number in [0, 1).
constexpr double unit_interval(uint64_t bits) { return static_cast<double>(bits >> 11) * 0x1p-53; }

// A hash of text that is the same on every machine (FNV-1a, 64 bits).
constexpr uint64_t hash_text(std::string_view text) {
  uint64_t hash = 14695981039346656037ull;
  for (char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211ull;
  return hash;
}

}  // namespace headroom
