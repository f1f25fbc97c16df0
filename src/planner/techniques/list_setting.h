// Lists within a technique's setting: "layers.0,embed_tokens".
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace headroom {

// Items separated by commas. In an item ',', ' ' and '%' are written as %2C, %20 and %25.
std::string write_list(const std::vector<std::string>& items);
std::vector<std::string> read_list(std::string_view text);

}  // namespace headroom
