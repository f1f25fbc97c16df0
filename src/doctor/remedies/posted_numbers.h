// The numbers of an advice, compared with those that the post sets: advice that lowers a setting names less than it
// has.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace headroom::doctor {

// `post` is in lower case in all of these functions; `names` are separated by '|'. In the names, '_' also stands for
// '-' and ' ' in the post; dashes before a name do not matter.

// `set` with each number of a setting that is to be lowered, where `post` has as much or less, replaced by a smaller
// one. Empty where a setting has its least value already, so that the advice says nothing.
std::string below_posted(const std::string& set, std::string_view post);

// Every number that the post gives one of the settings: "max_model_len=1024", "`num_proc`, lowered to 4".
std::vector<double> posted_numbers(std::string_view post, std::string_view names);
// The least of them that is a whole number of 1 or more.
std::optional<int64_t> posted_value(std::string_view post, std::string_view names);
// Those between 0 and 1: shares of a device.
std::vector<double> posted_shares(std::string_view post, std::string_view names);

// The longer side of the smallest image of which the post gives both sides ("images of 64x64").
std::optional<int64_t> posted_side(std::string_view post);

// The devices that share the weights by an option of the post ("--tensor-parallel-size 8", "-tp 2"); 1 if it has none.
int64_t posted_shards(std::string_view post);

}  // namespace headroom::doctor
