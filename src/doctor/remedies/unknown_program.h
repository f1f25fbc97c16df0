// The words of a remedy for a program that nothing shows to be PyTorch's.
#pragma once

#include <string_view>

namespace headroom::doctor {

// What a technique means in any program; empty for one that only PyTorch's programs have.
std::string_view words_for_any_program(std::string_view technique);

}  // namespace headroom::doctor
