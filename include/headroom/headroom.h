/// @file
/// The public API of headroom. Link headroom::headroom (find_package(headroom)).
#pragma once

#include "headroom/doctor.h"
#include "headroom/engine.h"
#include "headroom/questions.h"

/// headroom trains and serves language models inside a memory budget. The public API is in headroom::api.
namespace headroom {

/// The version of the library, "major.minor.patch"; a constant string, never null. Thread-safe.
const char* version();

}  // namespace headroom
