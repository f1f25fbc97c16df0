// Removes what identifies a person, a machine or a secret from a text that goes to a support desk.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace headroom::doctor {

// `text` with paths, host names, addresses, user names, e-mail addresses, URLs' hosts, and tokens or passwords replaced
// by <path>, <host>, <user>, <email>, <url>, <secret>. Of a path below site-packages or dist-packages that part stays.
// Words of `keep` stay as they are. A user name found in a home directory is replaced everywhere. What is doubtful
// goes.
std::string redact(std::string_view text, const std::vector<std::string>& keep = {});

}  // namespace headroom::doctor
