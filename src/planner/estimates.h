// Estimates in place of figures of a GPU that nobody measured, and the notes that say so.
#pragma once

#include <cstdint>
#include <string>

#include "cost/profile.h"

namespace headroom {

// The shipped profile that missing figures are taken from.
inline constexpr const char* kUnmeasuredGpu = "H100-80GB";

// Bytes that a plan books beside a GPU's arena: the profile's context_bytes; kUnmeasuredGpu's where they are 0, as the
// driver did not tell them when the GPU was measured.
int64_t booked_context_bytes(const Profile& gpu);

// Which figures of a plan by this profile are estimates, as a sentence with the remedy; empty where all are measured,
// and for a CPU's.
std::string estimates(const Profile& profile);
// The same as a note, "note: ...".
std::string estimates_note(const Profile& profile);

}  // namespace headroom
