#include "doctor/remedies/log_batch.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <string_view>

namespace headroom::doctor {
namespace {

bool figure_at(const std::string& log, size_t at) {
  return at < log.size() && std::isdigit(static_cast<unsigned char>(log[at])) != 0;
}

bool of_evaluation(const std::string& log, size_t batch) {
  const std::string before = log.substr(batch < 12 ? 0 : batch - 12, std::min<size_t>(batch, 12));
  for (const std::string_view word : {"eval_", "val_", "test_", "eval ", "evaluation ", "global_", "rollout_"})
    if (before.ends_with(word)) return true;
  return false;
}

// The number stated for a batch size: "batch_size=1", "batch size to 1", "batch size of 16". 0: none.
int64_t size_behind(const std::string& log, size_t size) {
  constexpr size_t kFarthest = 14;  // "size has been set to"
  size_t at = size;
  while (at < log.size() && at < size + kFarthest && !figure_at(log, at) && log[at] != '\n' && log[at] != '.') ++at;
  if (!figure_at(log, at)) return 0;
  const std::string between = log.substr(size, at - size);
  // The number counts something else: "batch size and 8 gpus", "batch_size, learning_rate=0".
  for (const std::string_view word : {"and", "on ", ",", "with", "per", "for", "gpu", "("})
    if (between.find(word) != std::string::npos) return 0;
  return std::strtoll(log.c_str() + at, nullptr, 10);
}

bool any_between(std::string_view text, std::initializer_list<std::string_view> words) {
  return std::any_of(words.begin(), words.end(),
                     [&](std::string_view word) { return text.find(word) != std::string_view::npos; });
}

// "バッチサイズを1に", "批大小为1".
bool one_in_other_words(const std::string& log) {
  for (const std::string_view word : {"バッチサイズ", "批大小", "批次大小", "批量大小", "批处理大小"})
    for (size_t at = log.find(word); at != std::string::npos; at = log.find(word, at + 1))
      if (size_behind(log, at + word.size()) == 1) return true;
  // "batch 1, ...", "bs=1", at the end of a clause: a loop counts its batches otherwise.
  for (const std::string_view word : {"batch 1", "batch=1", "bs=1", "bs 1", "batch为1", "batch是1"})
    for (size_t at = log.find(word); at != std::string::npos; at = log.find(word, at + 1)) {
      const size_t end = at + word.size();
      const bool ends = end == log.size() || std::string_view(",.\n;").find(log[end]) != std::string_view::npos ||
                        log.compare(end, 3, "，") == 0 || log.compare(end, 3, "。") == 0;
      if (ends && (at == 0 || std::isalpha(static_cast<unsigned char>(log[at - 1])) == 0)) return true;
    }
  return false;
}

}  // namespace

bool batch_of_one(const std::string& log) {
  bool stated = one_in_other_words(log);
  for (size_t at = log.find("batch"); at != std::string::npos; at = log.find("batch", at + 5)) {
    const size_t size = log.find("size", at + 5);
    if (size == std::string::npos || size > at + 6 || of_evaluation(log, at)) continue;
    const int64_t rows = size_behind(log, size + 4);
    if (rows > 1) return false;
    stated = stated || rows == 1;
  }
  return stated;
}

bool smaller_batch_failed(const std::string& log) {
  constexpr size_t kBefore = 72, kBehind = 72;
  for (size_t at = log.find("batch"); at != std::string::npos; at = log.find("batch", at + 5)) {
    const size_t begin = at < kBefore ? 0 : at - kBefore;
    const std::string_view before = std::string_view(log).substr(begin, at - begin);
    std::string_view behind = std::string_view(log).substr(at, kBehind);
    behind = behind.substr(0, behind.find('\n'));
    const bool tried = any_between(before.substr(before.rfind('\n') + 1), {"reduc", "decreas", "lower", "smaller"});
    // Chinese posts continue in the next line.
    const std::string_view around = std::string_view(log).substr(begin, at - begin + kBehind);
    if (any_between(around, {"调的非常小", "调得很小", "调到最小", "调小", "改小"}) &&
        any_between(around, {"依旧", "依然", "还是", "仍"}))
      return true;
    if (tried && any_between(behind, {" but ", "still", "the same", "not help", "n't help", "no effect", "not work",
                                      "n't work"}))
      return true;
  }
  return false;
}

}  // namespace headroom::doctor
