#include "doctor/remedies/told_stage.h"

#include <algorithm>
#include <array>
#include <cctype>

namespace headroom::doctor {
namespace {

bool letter(char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0; }
bool digit(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }

// "evaluat" is the stem of evaluate, evaluating, evaluation.
constexpr std::string_view kEvaluation =
    "evaluat|eval$|eval_|validat|val$|val_|val-|testing|the test|验证|评估|测试集|評価|検証|バリデーション";
constexpr std::string_view kSaving =
    "saving|i save|it saves|to save|save the|save model|save checkpoint|save_model|save_pretrained|save_checkpoint|"
    "save_state|at save|checkpoint saving|model checkpoint|保存|セーブ";
// Phrases in which memory is saved, or settings of saving.
constexpr std::string_view kSavingMemory =
    "memory saving|memory-saving|saving memory|save memory|saving gpu|save gpu|saving vram|save vram|to save some|"
    "节省|省显存|save_steps|save_strategy|save_total";
constexpr std::string_view kResuming =
    "resum|continue training|continue the training|continue from|restart from a checkpoint|from the last checkpoint|"
    "断点|续训|恢复训练|继续训练|再開";
constexpr std::string_view kRanOut =
    "out of memory|out-of-memory|outofmemory|oom$|ooms$|oomed|oom-|runs out|ran out|run out|running out|explod|"
    "memory leak|more and more memory|memory error|memory issue|memory problem|nothing is left|nothing in left|"
    "not enough memory|insufficient memory|memory overflow|爆显存|显存爆|爆了|显存不足|显存不够|显存溢出|显存超|"
    "内存不足|内存溢出|メモリ不足|メモリが足り";
constexpr std::string_view kWentWell =
    "fine|works|worked|work well|goes well|went well|ok$|no problem|without problem|no issue|success|smooth|正常|"
    "没问题|没有问题|没事|問題なく|普通に";
constexpr std::array<std::string_view, 8> kEndOfSentence = {". ", "? ", "! ", ".\"", "。", "？", "！", "; "};
constexpr std::array<std::string_view, 7> kEndOfClause = {", ", "，", "、", " but ", " until ", "但", " however "};

// Calls `each` with every piece of `text` between the separators; stops when it returns true.
template <size_t N, typename Each>
void pieces(std::string_view text, const std::array<std::string_view, N>& ends, Each each) {
  while (!text.empty()) {
    size_t end = text.size(), width = 0;
    for (const std::string_view mark : ends)
      if (const size_t at = text.find(mark); at < end) {
        end = at;
        width = mark.size();
      }
    if (each(text.substr(0, end))) return;
    text.remove_prefix(std::min(text.size(), end + width));
  }
}

// The stage's word in a clause that does not say that it went well.
std::string_view stage_in(std::string_view sentence, std::string_view words, std::string_view except) {
  std::string_view found;
  pieces(sentence, kEndOfClause, [&](std::string_view clause) {
    const std::string_view word = any_word(clause, words);
    const bool well = !any_word(clause, kWentWell).empty() && any_word(clause, kRanOut).empty();
    if (word.empty() || well || !any_word(clause, except).empty()) return false;
    found = word;
    return true;
  });
  return found;
}

}  // namespace

size_t find_word(std::string_view log, std::string_view word, size_t from) {
  const bool whole = word.ends_with('$');
  if (whole) word.remove_suffix(1);
  for (size_t at = log.find(word, from); at != std::string_view::npos; at = log.find(word, at + 1)) {
    const bool begins = at == 0 || !letter(word.front()) || !letter(log[at - 1]);
    const size_t end = at + word.size();
    if (begins && !(whole && end < log.size() && letter(log[end]))) return at;
  }
  return std::string_view::npos;
}

std::string_view any_word(std::string_view text, std::string_view words) {
  while (!words.empty()) {
    std::string_view word = words.substr(0, words.find('|'));
    words.remove_prefix(std::min(words.size(), word.size() + 1));
    if (find_word(text, word) == std::string_view::npos) continue;
    if (word.ends_with('$')) word.remove_suffix(1);
    return word;
  }
  return {};
}

std::string_view told_stage(std::string_view log, ToldStage stage) {
  std::string_view words = kEvaluation, except;
  if (stage == ToldStage::resuming) words = kResuming;
  if (stage == ToldStage::saving) {
    words = kSaving;
    except = kSavingMemory;
  }
  if (any_word(log, words).empty()) return {};
  std::string_view found;
  for (size_t at = 0; at < log.size() && found.empty();) {
    const size_t end = std::min(log.find('\n', at), log.size());
    const std::string_view line = log.substr(at, end - at);
    at = end + 1;
    const bool frame = line.find("file \"") != std::string_view::npos;
    if (frame || any_word(line, words).empty() || any_word(line, kRanOut).empty()) continue;
    pieces(line, kEndOfSentence, [&](std::string_view sentence) {
      if (!any_word(sentence, kRanOut).empty()) found = stage_in(sentence, words, except);
      return !found.empty();
    });
  }
  return found;
}

std::string_view told_after_epochs(std::string_view log) {
  constexpr std::string_view kWords =
      "after some epochs|after several epochs|after a few epochs|after few epochs|after the first epoch|"
      "after one epoch|after an epoch|after some steps|after several steps|after a few steps|after some iterations|"
      "after several iterations|after a few iterations|after a while|at the second epoch|the first few epoch|"
      "in the middle of training|几个epoch|几轮|训练到一半|训练一段时间|跑一段时间|运行一段时间|途中で";
  if (const std::string_view word = any_word(log, kWords); !word.empty()) return word;
  // "after 3 epochs", "after 120 steps"
  for (size_t at = log.find("after "); at != std::string_view::npos; at = log.find("after ", at + 1)) {
    size_t end = at + 6;
    while (end < log.size() && (digit(log[end]) || log[end] == '~' || log[end] == 'k')) ++end;
    if (end == at + 6) continue;
    const std::string_view behind = log.substr(end);
    for (const std::string_view unit : {" epoch", " step", " iteration", " batches"})
      if (behind.starts_with(unit)) return log.substr(at, end - at + unit.size());
  }
  return {};
}

std::string_view told_out_of_memory(std::string_view text) { return any_word(text, kRanOut); }

}  // namespace headroom::doctor
