// What people write about the batch next to a message: its size, and that a smaller one did not help.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace headroom::doctor {

// `log` in lower case in all. What others wrote in it, or only propose, is not read (own_words.h).

// Whether every batch size in the log is one; false when there is none.
bool batch_of_one(const std::string& log);
// The least batch that the log names as the job's own ("batch_size 2"); absent where it names none.
std::optional<int64_t> rows_of_the_post(const std::string& log);
// "I tried to reduce the batch size but got the same error."
bool smaller_batch_failed(const std::string& log);
// A batch of a few rows failed too, or the batch is said not to be the matter.
bool smallest_batch_failed(const std::string& log);

}  // namespace headroom::doctor
