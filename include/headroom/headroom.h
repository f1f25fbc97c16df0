// The public API of headroom. Link headroom::headroom (find_package(headroom)).
#pragma once

namespace headroom {

// The version of the library, "major.minor.patch"; a constant string, never null. Thread-safe.
const char* version();

}  // namespace headroom
