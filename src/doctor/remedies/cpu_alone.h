// A program that computes on the CPU alone: what ran out is host memory, whatever the words say of a device.
#pragma once

#include <string_view>

namespace headroom::doctor {

// The words of `log`, in lower case, that say so; empty where none do.
std::string_view cpu_alone(std::string_view log);

}  // namespace headroom::doctor
