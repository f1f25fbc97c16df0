// The chat template that the user gives for a server.
#pragma once

#include <string>

namespace headroom {

// The text of a template given by the user: the argument itself if it has {{ or {%, else the contents of the file with
// this name. Throws Error(usage) for a missing file, Error(format) for a template that is not supported.
std::string given_chat_template(const std::string& given);

}  // namespace headroom
