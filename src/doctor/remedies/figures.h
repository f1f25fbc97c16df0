// Formats bytes in GiB wherever that makes sense, so that the figures of a sentence can be added up.
#pragma once

#include <cstdint>
#include <string>

namespace headroom::doctor {

// "2.22 GiB", "0.14 GiB", "131.4 GiB"; below 0.1 GiB as format_bytes().
std::string figure(int64_t bytes);

}  // namespace headroom::doctor
