// Estimates for figures of a GPU that were not measured, and the notes that say so.
#pragma once

#include <cstdint>
#include <string>

#include "cost/profile.h"

namespace headroom {

// The shipped profile for missing figures.
inline constexpr const char* kUnmeasuredGpu = "H100-80GB";

// Bytes that a plan books in addition to a GPU's arena: the profile's context_bytes, or kUnmeasuredGpu's if they are 0
// because the driver did not report them.
int64_t booked_context_bytes(const Profile& gpu);

// Which figures of a plan by this profile are estimates, as a sentence with the remedy; empty if all are measured, and
// for a CPU's.
std::string estimates(const Profile& profile);
// The same as a note, "note: ...".
std::string estimates_note(const Profile& profile);

}  // namespace headroom
