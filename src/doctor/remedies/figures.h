// Bytes as an answer prints them: GiB wherever it makes sense, so that figures of one sentence can be added up.
#pragma once

#include <cstdint>
#include <string>

namespace headroom::doctor {

// "2.22 GiB", "0.14 GiB", "131.4 GiB"; below 0.1 GiB as format_bytes().
std::string figure(int64_t bytes);

}  // namespace headroom::doctor
