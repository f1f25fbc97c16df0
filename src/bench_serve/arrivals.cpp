#include "bench_serve/arrivals.h"

#include <cmath>

namespace headroom::bench {

Arrivals::Arrivals(double rate, double burstiness, uint64_t seed)
    : at_once_(std::isinf(rate)), bits_(seed), gaps_(burstiness, at_once_ ? 1 : 1 / (rate * burstiness)) {}

double Arrivals::next_gap() { return at_once_ ? 0 : gaps_(bits_); }

}  // namespace headroom::bench
