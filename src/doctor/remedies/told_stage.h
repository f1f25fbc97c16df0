// What people say about a failure without frames: at which stage memory ran out, and how it came about.
#pragma once

#include <array>
#include <string>
#include <string_view>

namespace headroom::doctor {

// `log` is in lower case in all of these functions.

// The offset of `word`, at `from` or later, where it does not continue another word or number ("eval" is not in
// "retrieval", "0卡" not in "3090卡");
// npos if there is none. A word with '$' at its end must end there too ("oom$" is not in "oomph").
size_t find_word(std::string_view log, std::string_view word, size_t from = 0);
// The first of the words, separated by '|', that stands there so, as a part of `words`; empty where none does.
std::string_view any_word(std::string_view text, std::string_view words);
// The neighbours of the word from `at` to `end` deny it ("not evaluation", "不是推理", "学習ではなく").
bool denied(std::string_view text, size_t at, size_t end);
// The first of the words that their neighbours do not deny.
std::string_view affirmed_word(std::string_view text, std::string_view words);
// The first 32 KiB of a log: people's words come first.
constexpr std::string_view beginning(std::string_view log) { return log.substr(0, size_t{32} << 10); }
// The text with each of the words replaced by blanks.
std::string without_words(std::string_view text, std::string_view words);
// The sentences of the lines of a text, and the clauses of a sentence, until `each` says true.
template <typename Each>
void each_sentence(std::string_view text, Each each);
template <typename Each>
void each_clause(std::string_view sentence, Each each);

enum class ToldStage {
  evaluation,
  saving,
  resuming,
  merging,
  quantising,
  converting,
  building,
  prediction,
  training,
  loading
};
// The word that names the stage, where one sentence of the log speaks of the stage and of memory that ran out, and
// does not say that all went well there. Empty where none does.
std::string_view told_stage(std::string_view log, ToldStage stage);
// The words that say that memory ran out, as people write it; empty when there are none.
std::string_view told_out_of_memory(std::string_view text);
// The words that say a process was ended from outside; empty where none do.
std::string_view told_killed(std::string_view text);

// What the program does, by all words of the log: it trains, or it only predicts (a chat, a server of somebody's own,
// embeddings, images) or reworks a model (merges, quantises, converts it). "A trained model" alone does
// not say that it trains.
enum class ToldTask { unknown, training, prediction };
ToldTask told_task(std::string_view log);

// All of it, read once, from the beginning and the end of a long log: people's words stand there.
struct Story {
  static constexpr size_t kStages = 10;
  std::array<std::string_view, kStages> stages;  // told_stage() of each
  ToldTask task = ToldTask::unknown;
  std::string_view growing;      // told_growing() of the whole log
  bool several_devices = false;  // several_devices_in_words() of it
  std::string_view at(ToldStage stage) const { return stages[static_cast<size_t>(stage)]; }
};
Story read_story(const std::string& log);

// Implementation of the templates.
namespace told {
// The end of the first piece of `text` and the bytes of the mark that ends it.
struct Piece {
  size_t end, mark;
};
Piece first_sentence(std::string_view text);
Piece first_clause(std::string_view text);
template <typename First, typename Each>
void pieces(std::string_view text, First first, Each each) {
  while (!text.empty()) {
    const Piece piece = first(text);
    if (each(text.substr(0, piece.end))) return;
    text.remove_prefix(piece.end + piece.mark < text.size() ? piece.end + piece.mark : text.size());
  }
}
}  // namespace told
template <typename Each>
void each_sentence(std::string_view text, Each each) {
  told::pieces(text, told::first_sentence, each);
}
template <typename Each>
void each_clause(std::string_view sentence, Each each) {
  told::pieces(sentence, told::first_clause, each);
}

}  // namespace headroom::doctor
