#include "doctor/remedies/told_growth.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <string>

#include "doctor/remedies/told_stage.h"

namespace headroom::doctor {
namespace {

bool digit(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }

constexpr std::string_view kAfterAWhile =
    "after some epochs|after several epochs|after a few epochs|after few epochs|after the first epoch|"
    "after one epoch|after an epoch|after some steps|after several steps|after a few steps|after some iterations|"
    "after several iterations|after a few iterations|after a while|at the second epoch|the first few epoch|"
    "in the middle of training|几个epoch|几轮|训练到一半|训练一段时间|跑一段时间|运行一段时间|途中で|第二个epoch|"
    "第二轮|第二个周期|跑了一会|过一段时间|一段时间后|エポック目で|数エポック|しばらく|训练完一个epoch|跑完一个epoch|"
    "一个epoch结束|一个epoch后|训练完一轮|at the end of the epoch|at the end of each epoch|at the end of an epoch|"
    "at the end of every epoch";
constexpr std::string_view kFewSteps =
    "after some steps|after several steps|after a few steps|after some iterations|after several iterations|"
    "after a few iterations";
// What does not grow, or no longer.
constexpr std::string_view kSteady =
    "up and down|no new peak|no further|not grow|n't "
    "grow|not increas|n't increas|no increase|stays the same|stays constant|"
    "is constant|is stable|stays stable|不再增|不增长|不会增|很稳定|稳定在|増えな|一定のまま";
constexpr std::string_view kGoesWrong =
    "problem|error|memoryerror|crash|fail|out of|oom$|dies|killed|报错|出错|崩|爆|不足|不够|溢出|不夠|落ち|エラー|不足";

constexpr std::string_view kGrowing =
    "increases along with|increase along with|grows along with|rises along with|grows each|grows every|grows per|grows "
    "after each|grows with each|grows with every|increases each|"
    "creep up|creeps up|creeping up|crept up|increases with each|increases per|climbs from|climbs to|一直在增加|keeps "
    "increasing|keeps growing|memory "
    "leak|usage "
    "increases|memory increases|grows over time|steady increase|more and more memory|gradually increas|increases "
    "gradually|slowly increas|slowly grow|keeps rising|consumption "
    "increases|memory increment|increase in each step|increase of memory|memory increase during|increase in memory "
    "during|越来越|不断增加|不断增长|一直增加|逐渐增加|"
    "増え続け|飙升|一直涨|一直在涨|不断上涨|持续增长|持续增加|持续上涨|慢慢增|越占越|累积|増えていく|徐々に増|"
    "増加し続け|増加していく|keeps on increasing|keeps going up|goes up with|goes up every|goes up each|rapidly "
    "increasing|starts increasing|steadily increas|steadily grow|steadily ris|constantly increas|constantly grow|"
    "continuously increas|continuously grow|continues to increase|continues to grow|continues to rise|keeps "
    "climbing|keep climbing|climbs with|climbs over|grows linearly|increases linearly|linearly increas|"
    "slowly fill|gradually fill|fills up slowly|fills up during|keeps filling|goes up by|increases during|grows "
    "during|increasing during|growing during|increasing over|growing over|一直在增|一直增|"
    "不断增|持续增|逐渐增|逐步增|缓慢增|慢慢涨|一直上涨|一直上升|不断上升|持续上升|逐渐上升|keep growing|keep "
    "increasing|progressively increas|progressively grow|increasing continuously|increasing continually|growing "
    "continuously|increasing with training|increasing with iter|increasing with step|increasing with epoch|increasing "
    "with time|increasing with each|increasing with every|increasing each|increasing every|growing each|growing "
    "every|grows with|grows until|increases until|increases "
    "with|increases every|increases over|continuous rising|continuously rising|rises continuously|rising continuously|"
    "rises steadily|rises with|rises every|rises each|rises during|rises until|rising with|rising during|rising every|"
    "rising until|keeps going higher|keeps getting higher|keeps getting larger|keeps adding up|continuous growth|"
    "continuous increase|constant increase|constant growth|accumulates over|accumulates with|accumulates every|"
    "ever increasing|ever growing|逐渐升高|不断升高|一直升高|持续升高|逐步升高|越来越高|越来越大|不断变大|不断累积|"
    "一直累积|上昇し続け|増え続ける";
// "grows unlimited", "goes up without end": growth and no bound to it, with a few words between.
constexpr std::string_view kRises =
    "grow|increas|rise|rising|climb|goes up|go up|going up|pile up|piles up|piling up|accumulat|涨|增加|增长|上升|増";
constexpr std::string_view kWithoutEnd =
    "ceaseless|unceasing|incessant|endless|unlimit|no limit|without limit|without bound|without stop|without end|"
    "unbounded|boundless|indefinite|non-stop|nonstop|never stop|not stop|n't stop|infinite|unstoppab|ever more|"
    "until oom|until it crash|until it die|until the oom|until out of memory|until cuda out|until it is full|"
    "until it's full|until full|till oom|无限|不停|不断|直到爆|直到oom|際限なく|止まらない|無限に";
// These may compare two settings: they tell of growth beside a word for time only.
constexpr std::string_view kMayCompare = "usage increases|memory increases|consumption increases";
// A setting that somebody changed.
constexpr std::string_view kBySetting =
    "if i|if you|when i increase|when increasing|by increasing|to increase|increase the|increased the|increasing the|"
    "i increased|have increased|i've increased|with increas|batch size|batch_size|batchsize|resolution|bigger|larger|"
    "more gpus|num_workers|allow growth|allow_growth|memory growth|gradient accumulation|accumulation_steps|"
    "error may|如果|设置|调大|改大";
// A leak that is only supposed, to explain why it fails.
constexpr std::string_view kSupposed =
    "might be|may be|maybe|could be|perhaps|i think|i guess|i suspect|i wonder|is there a|is this a|is it a|可能|怀疑|"
    "是不是|是否|かも|でしょうか";
constexpr std::string_view kTime =
    "every|each|over time|as "
    "time|until|till|step|epoch|iter|batch|gradual|slow|continu|constant|steadi|steady|during|per "
    "|after|while|keep|progress|when i train|in training|随|逐|每";
constexpr std::string_view kOfMemory =
    "memory|vram|ram$|gpu|usage|consum|leak|oom$|显存|内存|顯存|記憶體|占用|メモリ|使用量";

// "after 3 epochs", "after about 5-8 epochs", "after 120 steps"
std::string_view counted_after(std::string_view text) {
  for (size_t at = text.find("after "); at != std::string_view::npos; at = text.find("after ", at + 1)) {
    size_t begin = at + 6;
    for (const std::string_view about : {"about ", "around ", "roughly ", "approximately ", "the "})
      if (text.substr(begin).starts_with(about)) begin += about.size();
    size_t end = begin;
    while (end < text.size() &&
           (digit(text[end]) || std::string_view("~k-,").find(text[end]) != std::string_view::npos))
      ++end;
    if (text.substr(begin, end - begin).find_first_of("0123456789") == std::string_view::npos) continue;
    const std::string_view behind = text.substr(end);
    for (const std::string_view unit : {" epoch", " step", " iteration", " iters", " batches"})
      if (behind.starts_with(unit)) return text.substr(at, end - at + unit.size());
  }
  return {};
}

// A number of at least two: in the first epoch nothing went well before.
bool later(std::string_view number) { return std::atoi(std::string(number.substr(0, 6)).c_str()) >= 2; }

// "when the epoch goes to 60", "at epoch 12": from the epoch to the end of its number.
std::string_view number_of_epoch(std::string_view text, size_t at) {
  constexpr size_t kBefore = 16, kBetween = 10;
  size_t begin = at + 5;                                     // behind "epoch"
  if (begin < text.size() && text[begin] == 's') return {};  // a setting
  while (begin < text.size() && begin < at + 5 + kBetween && !digit(text[begin])) ++begin;
  if (begin >= text.size() || !digit(text[begin])) return {};
  const std::string_view between = text.substr(at + 5, begin - at - 5);
  const std::string_view before = text.substr(at < kBefore ? 0 : at - kBefore, std::min(at, kBefore));
  const bool bare = between.find_first_not_of(" :=#") == std::string_view::npos;
  const bool moves = !any_word(between, "goes|go|reach|comes|gets|to$|到").empty();
  if (!moves && !(bare && !any_word(before, "at$|when|until|till|after|around|by$|到|在|第").empty())) return {};
  size_t end = begin;
  while (end < text.size() && digit(text[end])) ++end;
  return later(text.substr(begin, end - begin)) ? text.substr(at, end - at) : std::string_view();
}

// "the 60th epoch", "第60个epoch", "跑到30轮", "5エポック目": from the number to the end of its unit.
std::string_view epoch_of_number(std::string_view text, size_t unit, size_t size) {
  constexpr size_t kAround = 12;
  std::string_view before = text.substr(0, unit);
  for (const std::string_view filler : {" ", "个", "th", "rd", "nd", " "})
    if (before.ends_with(filler)) before.remove_suffix(filler.size());
  const bool ordinal = !before.empty() && text.substr(before.size(), 2).find_first_of("tnr") == 0;
  size_t begin = before.size();
  while (begin > 0 && digit(before[begin - 1])) --begin;
  if (begin == before.size() || !later(before.substr(begin))) return {};
  const std::string_view ahead = before.substr(begin < kAround ? 0 : begin - kAround, std::min(begin, kAround));
  const std::string_view behind = text.substr(unit + size, kAround);
  const bool reached =
      ordinal || ahead.ends_with("第") || ahead.ends_with("到") || ahead.ends_with("到第") || ahead.ends_with("了");
  const bool passed = behind.starts_with("后") || behind.starts_with("之后") || behind.starts_with("左右") ||
                      behind.starts_with("以后") || behind.starts_with("目") || behind.starts_with("ほど");
  return reached || passed ? text.substr(begin, unit + size - begin) : std::string_view();
}

std::string_view failed_in_a_later_epoch(std::string_view sentence) {
  if (any_word(sentence, kGoesWrong).empty() || sentence.find("file \"") != std::string_view::npos) return {};
  for (size_t at = sentence.find("epoch"); at != std::string_view::npos; at = sentence.find("epoch", at + 1)) {
    const bool setting = at > 0 && (sentence[at - 1] == '_' || sentence[at - 1] == '-');
    if (setting) continue;
    if (const std::string_view found = number_of_epoch(sentence, at); !found.empty()) return found;
  }
  for (const std::string_view unit : {"epoch", "轮", "エポック"})
    for (size_t at = sentence.find(unit); at != std::string_view::npos; at = sentence.find(unit, at + 1))
      if (const std::string_view found = epoch_of_number(sentence, at, unit.size()); !found.empty()) return found;
  return {};
}

std::string_view in_words(std::string_view text) {
  std::string_view found;
  each_sentence(text, [&](std::string_view sentence) {
    if (!any_word(sentence, kSteady).empty()) return false;
    found = any_word(sentence, kAfterAWhile);
    if (found.empty()) found = counted_after(sentence);
    if (found.empty()) found = failed_in_a_later_epoch(sentence);
    return !found.empty();
  });
  return found;
}

// "As the training continues, the memory it needs increased": memory rises while time passes. Where somebody changed a
// setting, the setting raises it.
std::string_view rises_by_itself(std::string_view sentence) {
  constexpr std::string_view kRose =
      "increased|increases|increasing|grows|grew|growing|rises|rising|climbs|climbing|goes up|going up|accumulating|"
      "accumulates|doubles|piles up|more and more|会增加|都会增加|会增长|会上涨|会变大|还在涨|会上升|增える";
  constexpr std::string_view kPasses =
      "continues|continued|proceed|progress|all the time|each|every|epoch|step|iteration|over time|with time|passing|"
      "during|keeps|gradual|process|每次|每个|每轮|每一|随着|毎に|たびに";
  constexpr std::string_view kNamed = "memory|vram|ram$|gpu|显存|内存|顯存|記憶體|メモリ";
  if (any_word(sentence, kNamed).empty() || any_word(sentence, kPasses).empty()) return {};
  return any_word(sentence, kBySetting).empty() ? affirmed_word(sentence, kRose) : std::string_view();
}

// "Over 500 pages the memory is not released": kept from input to input.
std::string_view kept_over_inputs(std::string_view sentence) {
  constexpr std::string_view kInputs =
      "pages|images|files|videos|many|batches|each|every|loop|after processing|大批量|批量|多张|每次|每个|循环|枚";
  return any_word(sentence, kInputs).empty() ? std::string_view() : any_word(sentence, kNotGivenBack);
}

// The word of a list of growth; else the one that says that a rise has no end, or goes on by itself.
std::string_view grows_in(std::string_view words, std::string_view sentence) {
  const std::string_view listed = affirmed_word(words, kGrowing);
  if (!listed.empty()) return listed;
  if (const std::string_view kept = kept_over_inputs(words); !kept.empty()) return kept;
  if (const std::string_view endless = any_word(sentence, kWithoutEnd);
      !endless.empty() && !any_word(words, kRises).empty())
    return endless;
  return rises_by_itself(words);
}

// A sentence of memory, or the one behind it, says that it grows.
std::string_view growing_in(std::string_view text) {
  constexpr std::string_view kOthers = "loss increases|losses increase|accuracy increases|accuracy keeps increasing";
  std::string_view found;
  bool of_memory = false;  // the sentence before
  each_sentence(text, [&](std::string_view sentence) {
    const bool here = !any_word(sentence, kOfMemory).empty();
    const bool code = sentence.find("file \"") != std::string_view::npos;
    if (!code && (here || of_memory) && any_word(sentence, kSteady).empty())
      found = grows_in(without_words(sentence, kOthers), sentence);
    const bool supposed = found == "memory leak" && !any_word(sentence, kSupposed).empty();
    const bool compares = !any_word(found, kMayCompare).empty();
    if ((supposed || compares) && any_word(sentence, kTime).empty()) found = {};
    if (compares && !any_word(sentence, kBySetting).empty()) found = {};
    of_memory = here;
    return !found.empty();
  });
  return found;
}

// What `find` finds at the beginning of a log, else at its end: people's words stand at either.
template <typename Find>
std::string_view at_either_end(std::string_view log, Find find) {
  constexpr size_t kRead = size_t{64} << 10;
  const std::string_view found = find(log.substr(0, kRead));
  if (!found.empty() || log.size() <= kRead) return found;
  return find(log.substr(std::max(kRead, log.size() - kRead)));
}

}  // namespace

std::string_view told_after_epochs(std::string_view log) { return at_either_end(log, in_words); }

std::string_view told_growing(std::string_view log) { return at_either_end(log, growing_in); }

bool only_first_steps(std::string_view told) {
  constexpr int kFew = 20;
  if (!any_word(told, kFewSteps).empty()) return true;
  if (!told.starts_with("after ") || told.find("epoch") != std::string_view::npos) return false;
  const size_t at = told.find_first_of("0123456789");
  if (at == std::string_view::npos) return false;
  const size_t end = std::min(told.find_first_not_of("0123456789", at), told.size());
  return told.find('k', end) != end &&
         std::atoi(std::string(told.substr(at, std::min<size_t>(end - at, 6))).c_str()) <= kFew;
}

}  // namespace headroom::doctor
