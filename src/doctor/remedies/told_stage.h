// What people say of a failure where no frames show it: at which stage the memory ended, and how it came to that.
#pragma once

#include <string>
#include <string_view>

namespace headroom::doctor {

// `log` in lower case in all of these.

// Where `word` stands from `from` on and does not continue another one ("retrieval" holds no "eval"); npos where it
// does not. A word that ends in '$' must end there too ("oom$" is not in "oomph").
size_t find_word(std::string_view log, std::string_view word, size_t from = 0);
// The first of the words, separated by '|', that stands there so; empty where none does.
std::string_view any_word(std::string_view text, std::string_view words);

enum class ToldStage { evaluation, saving, resuming };
// The word that names the stage, where one sentence of the log speaks of the stage and of memory that ran out, and
// does not say that all went well there. Empty where none does.
std::string_view told_stage(std::string_view log, ToldStage stage);
// The words that say so where it failed after whole epochs, or many steps, that went well.
std::string_view told_after_epochs(std::string_view log);
// The words that say memory ran out, as people write it; empty where none do.
std::string_view told_out_of_memory(std::string_view text);

}  // namespace headroom::doctor
