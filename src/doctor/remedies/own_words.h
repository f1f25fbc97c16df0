// What a person says of their own job in a log that also holds what others say: replies that are quoted or stand below
// the post, and proposals ("try batch_size=1").
#pragma once

#include <string>
#include <string_view>

namespace headroom::doctor {

// `log` is in lower case. It without lines that quote a reply, and without what others wrote below the post.
// Quoted program output, commands and code remain: people quote their own logs too.
std::string without_replies(const std::string& log);

// Whether the sentence proposes or asks for something, rather than tells what was done ("you can set ...", "try ...",
// "should i set ...", "可以试试 ...").
bool proposes(std::string_view sentence);

}  // namespace headroom::doctor
