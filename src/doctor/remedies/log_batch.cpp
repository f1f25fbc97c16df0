#include "doctor/remedies/log_batch.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <string_view>

#include "base/find_text.h"
#include "doctor/remedies/own_words.h"
#include "doctor/remedies/posted_numbers.h"
#include "doctor/remedies/told_stage.h"
#include "doctor/remedies/tried.h"

namespace headroom::doctor {
namespace {

bool figure_at(const std::string& log, size_t at) {
  return at < log.size() && std::isdigit(static_cast<unsigned char>(log[at])) != 0;
}

bool of_evaluation(const std::string& log, size_t batch) {
  const std::string before = log.substr(batch < 12 ? 0 : batch - 12, std::min<size_t>(batch, 12));
  for (const std::string_view word :
       {"eval_", "val_", "test_", "eval ", "evaluation ", "global_", "rollout_", "writer_"})
    if (before.ends_with(word)) return true;
  return false;
}

// The number stated for a batch size: "batch_size=1", "batch size to 1", "batch size of 16". 0: none.
int64_t size_behind(const std::string& log, size_t size) {
  constexpr size_t kFarthest = 14;  // characters: "size has been set to"
  size_t at = size;
  for (size_t characters = 0; at < log.size() && characters < kFarthest && !figure_at(log, at); ++at) {
    if (log[at] == '\n' || log[at] == '.') break;
    characters += (static_cast<unsigned char>(log[at]) & 0xC0) != 0x80 ? 1 : 0;
  }
  if (!figure_at(log, at)) return 0;
  const size_t behind = std::min(log.find_first_not_of("0123456789", at), log.size());
  if (behind < log.size() && log[behind] == '/') return 0;  // "a third of it: 1/3"
  const std::string between = log.substr(size, at - size);
  // The number counts something else: "batch size and 8 gpus", "batch_size, learning_rate=0".
  for (const std::string_view word : {"and", "on ", ",", "，", "。", "、", "with", "per", "for", "gpu", "("})
    if (between.find(word) != std::string::npos) return 0;
  return std::strtoll(log.c_str() + at, nullptr, 10);
}

bool any_between(std::string_view text, std::initializer_list<std::string_view> words) {
  return std::any_of(words.begin(), words.end(),
                     [&](std::string_view word) { return text.find(word) != std::string_view::npos; });
}

// "batch=1 imgsz=640": settings in a row, not a loop that counts its batches.
bool an_option_follows(const std::string& log, size_t end) {
  const std::string_view behind = std::string_view(log).substr(end, 10);
  for (const std::string_view option :
       {" imgsz", " img", " epochs", " workers", " device", " model=", " data=", " lr", " on ", " and "})
    if (behind.starts_with(option)) return true;
  return false;
}

// "バッチサイズを1に", "批大小为1".
bool one_in_other_words(const std::string& log) {
  for (const std::string_view word : {"バッチサイズ", "批大小", "批次大小", "批量大小", "批处理大小"})
    for (size_t at = find_text(log, word); at != std::string_view::npos; at = find_text(log, word, at + 1))
      if (size_behind(log, at + word.size()) == 1) return true;
  for (const std::string_view word : {"batch size is one", "batch size of one", "batch size to one", "batch size one",
                                      "batchsize is one", "batchsize of one", "a batch of one"})
    if (!any_word(log, word).empty()) return true;
  // "batch size as small as just 1"
  for (const std::string_view word : {"batch size as small as", "batch size as low as", "batch size down to"})
    for (size_t at = find_text(log, word); at != std::string_view::npos; at = find_text(log, word, at + 1))
      if (size_behind(log, at + word.size()) == 1) return true;
  // "batch 1, ...", "bs=1", at the end of a clause: a loop counts its batches otherwise.
  for (const std::string_view word : {"batch 1", "batch=1", "bs=1", "bs 1", "batch为1", "batch是1"})
    for (size_t at = find_text(log, word); at != std::string_view::npos; at = find_text(log, word, at + 1)) {
      const size_t end = at + word.size();
      const bool ends = end == log.size() || std::string_view(",.\n;").find(log[end]) != std::string_view::npos ||
                        log.compare(end, 3, "，") == 0 || log.compare(end, 3, "。") == 0 || an_option_follows(log, end);
      if (ends && (at == 0 || std::isalpha(static_cast<unsigned char>(log[at - 1])) == 0)) return true;
    }
  return false;
}

// Sentences near one another: "I reduced the batch size. The same error."
bool lowered_nearby(std::string_view log) {
  constexpr size_t kBefore = 72, kBehind = 72;
  for (size_t at = log.find("batch"); at != std::string_view::npos; at = log.find("batch", at + 5)) {
    if (log.substr(0, at).ends_with("writer_")) continue;
    const size_t begin = at < kBefore ? 0 : at - kBefore;
    const std::string_view before = log.substr(begin, at - begin);
    std::string_view behind = log.substr(at, kBehind);
    behind = behind.substr(0, behind.find('\n'));
    const bool tried = any_between(before.substr(before.rfind('\n') + 1), {"reduc", "decreas", "lower", "smaller"});
    // Chinese posts continue in the next line.
    const std::string_view around = log.substr(begin, at - begin + kBehind);
    if (any_between(around, {"调的非常小", "调得很小", "调到最小", "调小", "改小"}) &&
        any_between(around, {"依旧", "依然", "还是", "仍"}))
      return true;
    if (tried && any_between(behind, {" but ", "still", "the same", "not help", "n't help", "no effect", "not work",
                                      "n't work"}))
      return true;
  }
  return false;
}

// "batch 2", "batch_size=1": so few rows that there is hardly a smaller batch.
bool names_few_rows(std::string_view sentence) {
  constexpr int64_t kFew = 4;
  const std::string text(sentence);
  for (size_t at = text.find("batch"); at != std::string::npos; at = text.find("batch", at + 5)) {
    size_t end = at + 5;
    for (const std::string_view rest : {"_size", " size", "size", "-size"})
      if (text.compare(end, rest.size(), rest) == 0) {
        end += rest.size();
        break;
      }
    const int64_t rows = of_evaluation(text, at) ? 0 : size_behind(text, end);
    if (rows >= 1 && rows <= kFew) return true;
  }
  // "from 10 down to 2", "一路降到2"
  for (const std::string_view lowered :
       {"down to ", "lowered to ", "reduced to ", "降到", "调到", "降至", "降为", "改成"})
    if (const size_t at = text.find(lowered); at != std::string::npos)
      if (const int64_t rows = std::strtoll(text.c_str() + at + lowered.size(), nullptr, 10); rows >= 1 && rows <= kFew)
        return true;
  return one_in_other_words(text);
}

constexpr std::string_view kBatch = "batch|bs=|bs$|バッチ|批大小|批次|批量|批处理";
constexpr std::string_view kOtherBatch =
    "writer_batch_size|eval_batch_size|val_batch_size|test_batch_size|per_device_eval_batch_size|batchnorm|batch norm|"
    "batch_norm";
constexpr std::string_view kLowered =
    "reduc|decreas|lower|smaller|shrink|halv|down to|minimum|i change |i changed |i have changed |i've changed |change "
    "the|changed the|change batch|changed batch|set to "
    "1$|"
    "调为|调成|降到|降低|降为|下调|调到|调小|调低|调至|改成|改到|改小|改为|减小|减少|减半|设置成|设成|设为|缩小|小さく|"
    "下げ|減ら";
constexpr std::string_view kEven =
    "even with|even at|even for|even when|even if|even though|even a batch|even batch|even the batch|就算|即使|哪怕|"
    "即便|都|しても|でも";

bool lowered_in_vain(std::string_view sentence) {
  const std::string text = without_words(sentence, kOtherBatch);
  if (any_word(text, kBatch).empty() || text.find("file \"") != std::string::npos) return false;
  if (says_not_the_matter(text, kBatch)) return true;
  if (!says_in_vain(text) && !says_attempted(text)) return false;
  return !any_word(text, kLowered).empty() || (!any_word(text, kEven).empty() && names_few_rows(text));
}

// The log without others' replies, and without sentences about a batch that only propose one, or that say that it goes
// well with `none_that_goes_well`.
std::string of_the_person(const std::string& log, bool none_that_goes_well) {
  constexpr std::string_view kWell =
      "works|worked|runs fine|runs well|trains fine|is fine|goes well|no "
      "problem|正常|没问题|能跑|可以跑|動きます|動いた";
  if (any_word(log, kBatch).empty()) return log;
  std::string text = without_replies(log);
  const std::string read = text;
  each_sentence(beginning(read), [&](std::string_view sentence) {
    if (any_word(sentence, kBatch).empty()) return false;
    const bool well = none_that_goes_well && !affirmed_word(sentence, kWell).empty() && !says_in_vain(sentence);
    if (well || proposes(sentence))
      text.replace(static_cast<size_t>(sentence.data() - read.data()), sentence.size(), sentence.size(), ' ');
    return false;
  });
  return text;
}

}  // namespace

bool batch_of_one(const std::string& whole) {
  const std::string log = of_the_person(whole, true);
  constexpr std::string_view kNames =
      "bs_trn|bs_train|trn_bs|train_bs|bsz|samples_per_gpu|imgs_per_gpu|img_per_gpu|images_per_gpu|ims_per_batch";
  if (posted_value(log, kNames) == 1) return true;
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

std::optional<int64_t> rows_of_the_post(const std::string& whole) {
  if (batch_of_one(whole)) return 1;
  return posted_value(of_the_person(whole, false), "batch_size|batchsize|bach_size|train_batch_size|images_per_gpu");
}

bool smaller_batch_failed(const std::string& whole) {
  const std::string log = of_the_person(whole, false);
  return lowered_nearby(log) || each_with_answer(beginning(log), [](std::string_view sentence, bool vain_behind) {
           if (lowered_in_vain(sentence)) return true;
           const std::string text = vain_behind ? without_words(sentence, kOtherBatch) : std::string();
           return !any_word(text, kBatch).empty() && !any_word(text, kLowered).empty();
         });
}

bool smallest_batch_failed(const std::string& whole) {
  if (batch_of_one(whole)) return true;
  const std::string log = of_the_person(whole, false);
  bool found = false;
  each_sentence(beginning(log), [&](std::string_view sentence) {
    const std::string text = without_words(sentence, kOtherBatch);
    found = says_not_the_matter(text, kBatch) || (lowered_in_vain(sentence) && names_few_rows(text));
    return found;
  });
  return found;
}

}  // namespace headroom::doctor
