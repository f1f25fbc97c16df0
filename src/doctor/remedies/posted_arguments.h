// Arguments of a call in a remedy's text that the post passes already.
#pragma once

#include <string>
#include <string_view>

namespace headroom::doctor {

// `set` without the arguments of its calls "name(..., a=1, b=2)" that `post`, in lower case, has, whatever its spaces
// and quotation marks; the parts between semicolons that have no other argument are left out. Empty where none is left.
std::string without_posted_arguments(const std::string& set, std::string_view post);

}  // namespace headroom::doctor
