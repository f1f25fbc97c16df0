// The size of a linear layer, as a parameter of tests.
#pragma once

#include <cstdint>
#include <ostream>

namespace headroom::op_test {

struct LayerSize {
  int64_t rows, ins, outs;
};

inline std::ostream& operator<<(std::ostream& out, const LayerSize& size) {
  return out << size.rows << " rows, " << size.ins << " -> " << size.outs;
}

}  // namespace headroom::op_test
