// Whether the user's environment sets OpenMP up.
#pragma once

#include <unistd.h>

#include <string_view>

namespace headroom {

// Any variable of OpenMP's or libgomp's but OMP_NUM_THREADS: then libgomp computes, as it was told (src/team).
inline bool openmp_set_up() {
  for (char** entry = environ; entry && *entry; ++entry) {
    const std::string_view text = *entry;
    if ((text.starts_with("OMP_") && !text.starts_with("OMP_NUM_THREADS=")) || text.starts_with("GOMP_")) return true;
  }
  return false;
}

}  // namespace headroom
