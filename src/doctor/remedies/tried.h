// What a person has tried already, by the words of the log.
#pragma once

#include <string_view>

namespace headroom::doctor {

// One sentence of the log (in lower case) names what the technique does and says that it did not help.
bool tried_in_vain(std::string_view log, std::string_view technique);

}  // namespace headroom::doctor
