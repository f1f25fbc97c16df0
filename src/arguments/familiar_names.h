// What a user who knows other trainers may mean by an option.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace headroom {

// The option of `names` that other systems call `wrong`, with a value if the name implies one ("precision bf16-mixed"
// for "bf16"); else the nearest name by spelling, if it is near; else empty. Without leading dashes; underscores count
// as dashes.
std::string familiar_option(std::string_view wrong, std::span<const std::string> names);

}  // namespace headroom
