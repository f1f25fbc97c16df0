// What people say of the batch beside a message: its size, and that a smaller one changed nothing.
#pragma once

#include <string>

namespace headroom::doctor {

// `log` in lower case in both.

// Whether every batch size that the log states is one; false where it states none.
bool batch_of_one(const std::string& log);
// "I tried to reduce the batch size but got the same error."
bool smaller_batch_failed(const std::string& log);

}  // namespace headroom::doctor
