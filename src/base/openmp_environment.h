// Whether the user's environment configures OpenMP.
#pragma once

#include <unistd.h>

#include <string_view>

namespace headroom {

// Whether any variable of OpenMP or libgomp except OMP_NUM_THREADS is set: then libgomp runs the team, as configured
// (src/team).
inline bool openmp_set_up() {
  for (char** entry = environ; entry && *entry; ++entry) {
    const std::string_view text = *entry;
    if ((text.starts_with("OMP_") && !text.starts_with("OMP_NUM_THREADS=")) || text.starts_with("GOMP_")) return true;
  }
  return false;
}

}  // namespace headroom
