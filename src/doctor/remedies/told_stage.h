// What people say about a failure without frames: at which stage memory ran out, and how it came about.
#pragma once

#include <string>
#include <string_view>

namespace headroom::doctor {

// `log` is in lower case in all of these functions.

// The offset of `word`, at `from` or later, where it does not continue another word ("eval" is not in "retrieval");
// npos if there is none. A word with '$' at its end must end there too ("oom$" is not in "oomph").
size_t find_word(std::string_view log, std::string_view word, size_t from = 0);
// The first of the words, separated by '|', that find_word() finds; empty when there is none.
std::string_view any_word(std::string_view text, std::string_view words);

enum class ToldStage { evaluation, saving, resuming };
// The word for the stage in a sentence of the log that mentions both the stage and memory that ran out, and does not
// say that the stage went well. Empty when there is none.
std::string_view told_stage(std::string_view log, ToldStage stage);
// The words that say that it failed after whole epochs, or many steps, that went well.
std::string_view told_after_epochs(std::string_view log);
// The words that say that memory ran out, as people write it; empty when there are none.
std::string_view told_out_of_memory(std::string_view text);

}  // namespace headroom::doctor
