// Removes what identifies a person or a machine, and secrets, from a text for a support desk.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace headroom::doctor {

// `text` with paths, host names, addresses, user names, e-mail addresses, hosts of URLs, and tokens or passwords
// replaced by <path>, <host>, <user>, <email>, <url>, <secret>. Of a path the part below site-packages or dist-packages
// is kept, and so are the words of `keep`. A user name found in a home directory is replaced everywhere. Doubtful words
// are redacted.
std::string redact(std::string_view text, const std::vector<std::string>& keep = {});

}  // namespace headroom::doctor
