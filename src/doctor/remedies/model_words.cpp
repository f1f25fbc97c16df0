#include "doctor/remedies/model_words.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <string_view>
#include <vector>

#include "base/find_text.h"
#include "doctor/remedies/told_stage.h"

namespace headroom::doctor {
namespace {

bool digit(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }
bool in_a_number(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '.' || c == '-'; }
bool in_a_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0; }

constexpr double kLeast = 0.3, kMost = 700;  // billions: smaller or larger numbers mean something else

// Start of the number (digits, points, an 'x' between digits) that ends at `end`.
size_t begin_of_number(const std::string& text, size_t end) {
  size_t begin = end;
  while (begin > 0 && (digit(text[begin - 1]) || text[begin - 1] == '.' || text[begin - 1] == 'x')) --begin;
  while (begin < end && !digit(text[begin])) ++begin;
  return begin;
}

// The same without an 'x'.
size_t begin_of_amount(const std::string& text, size_t end) {
  const size_t begin = begin_of_number(text, end);
  const size_t times = std::string_view(text).substr(begin, end - begin).rfind('x');
  return times == std::string_view::npos ? begin : begin + times + 1;
}

// "7", "1.5", "8x7". About a sixth of a model is shared by its experts.
double billions(const std::string& number) {
  constexpr double kOwn = 0.84;
  const size_t times = number.find('x');
  const double first = std::strtod(number.c_str(), nullptr);
  if (times == std::string::npos) return first;
  return first * std::strtod(number.c_str() + times + 1, nullptr) * kOwn;
}

// "yi34b", "llama7b": the number follows the name of a family of models.
bool behind_a_family(const std::string& text, size_t begin) {
  const std::string_view before = std::string_view(text).substr(0, begin);
  for (const std::string_view family :
       {"yi",      "llama", "llama2",   "llama3",   "qwen",   "qwen2",  "baichuan", "baichuan2", "chatglm", "glm",
        "mistral", "gemma", "internlm", "deepseek", "vicuna", "falcon", "bloom",    "opt",       "phi",     "gpt"})
    if (before.ends_with(family) &&
        (before.size() == family.size() || !in_a_word(before[before.size() - family.size() - 1])))
      return true;
  return false;
}

int bits_in(const std::string& text) {
  constexpr std::string_view kFour = "4bit|4-bit|int4|awq|gptq|nf4|gguf|ggml|q4_|load_in_4bit|qlora|bnb_4bit",
                             kEight = "8bit|8-bit|int8|fp8|q8_|load_in_8bit";
  if (!any_word(text, kFour).empty()) return 4;
  return any_word(text, kEight).empty() ? 16 : 8;
}

// The ways to write "RTX-4090": "rtx 4090", "rtx4090", "rtx-4090", "4090"; "A100-80GB": "a100 80gb", "80gb a100".
std::vector<std::string> ways_to_write(std::string name) {
  for (char& c : name) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  const size_t dash = name.find('-');
  const std::string series = name.substr(0, dash);
  if (dash == std::string::npos) return {name};
  const std::string rest = name.substr(dash + 1);
  if (rest.ends_with("gb")) {  // "A100-80GB"
    const std::string amount = rest.substr(0, rest.size() - 1);
    return {name,
            series + " " + rest,
            series + "(" + rest,
            series + " (" + rest,
            rest + " " + series,
            series + " " + amount,
            series + "-" + amount};
  }
  if (series != "rtx" && series != "gtx") return {name};
  return {series + " " + rest, series + rest, name, rest};
}

// An amount that the text tells as used, or as an end of a growth, is not the size of a device: "from 21g to 38g",
// "uses 30 gb", "显存涨到38g".
bool told_as_used(std::string_view before, std::string_view behind) {
  constexpr std::string_view kFillers[] = {" ", "~", "about", "around", "over", "almost", "nearly", "大约", "约", "了"};
  constexpr std::string_view kUses[] = {"from",     "to",       "use",       "uses",   "used", "using", "usage",
                                        "take",     "takes",    "took",      "taking", "need", "needs", "require",
                                        "requires", "consumes", "consuming", "占用",   "占",   "用",    "涨",
                                        "涨到",     "升到",     "需要",      "消耗",   "到",   "从"};
  constexpr std::string_view kDevices = "card|graphics|显卡|的卡|单卡";
  constexpr std::string_view kTo = " to ";
  if (!any_word(behind.substr(0, std::min<size_t>(behind.size(), 12)), kDevices).empty()) return false;
  if (behind.starts_with(kTo) && behind.size() > kTo.size() && digit(behind[kTo.size()])) return true;
  for (bool shorter = true; shorter;) {
    shorter = false;
    for (const std::string_view filler : kFillers)
      if (before.ends_with(filler)) {
        before.remove_suffix(filler.size());
        shorter = true;
      }
  }
  for (const std::string_view word : kUses) {
    if (!before.ends_with(word)) continue;
    const size_t begin = before.size() - word.size();
    if (begin == 0 || !in_a_word(before[begin - 1]) || !in_a_word(word.front())) return true;
  }
  return false;
}

// "8x4090", "2 * rtx 3090", "4 3090s": several devices.
bool several_before(const std::string& text, size_t at) {
  size_t end = at;
  while (end > 0 && (text[end - 1] == ' ' || text[end - 1] == 'x' || text[end - 1] == '*')) --end;
  if (end == at || end == 0) return false;
  for (const std::string_view count : {"two", "three", "four", "eight", "both", "dual", "两块", "两张", "双"})
    if (std::string_view(text).substr(0, end).ends_with(count)) return true;
  if (!digit(text[end - 1])) return false;
  return text[end - 1] != '1' || (end > 1 && digit(text[end - 2]));  // "1 x a100" is one
}

}  // namespace

std::optional<Gpu> gpu_in_words(const std::string& text, bool of_several) {
  std::optional<Gpu> found;
  size_t longest = 3;  // "t4" would match inside too many words
  for (const Gpu& gpu : known_gpus())
    for (const std::string& name : ways_to_write(gpu.name)) {
      if (name.size() <= longest) continue;
      const size_t at = find_text(text, name), end = at + name.size();
      if (at == std::string::npos) continue;
      const bool whole = (at == 0 || !in_a_word(text[at - 1])) &&
                         (end == text.size() || !in_a_word(text[end]) || text.compare(end, 3, "gpu") == 0);
      // A different card: "3080 ti", "4060-ti".
      if (!whole || text.compare(end, 3, " ti") == 0 || text.compare(end, 3, "-ti") == 0) continue;
      if (!of_several && several_before(text, at)) return std::nullopt;
      found = gpu;
      longest = name.size();
    }
  return found;
}

namespace {

// An amount of 2 to 200 GB in a text, and what stands around it.
struct AmountInWords {
  double gib = 0;
  std::string_view before, behind;
};

// Calls `each` with every amount, until it says true.
template <typename Each>
void each_amount(const std::string& text, Each each) {
  constexpr size_t kAround = 16;
  const std::string_view all = text;
  for (size_t at = text.find('g'); at != std::string::npos; at = text.find('g', at + 1)) {
    const size_t digits = at > 0 && text[at - 1] == ' ' ? at - 1 : at;
    const size_t begin = begin_of_amount(text, digits);
    size_t end = at + 1;
    for (const std::string_view rest : {"ib", "b"})
      if (text.compare(end, rest.size(), rest) == 0) {
        end += rest.size();
        break;
      }
    if (text.compare(end, 1, "s") == 0) ++end;                                           // "8 A100-40Gs"
    const bool counted = begin > 1 && text[begin - 1] == 'x' && digit(text[begin - 2]);  // "a100x8x80g"
    if (begin == digits || (end < text.size() && in_a_word(text[end])) ||
        (begin > 0 && in_a_word(text[begin - 1]) && !counted))
      continue;
    const double gib = std::strtod(text.c_str() + begin, nullptr);
    if (gib < 2 || gib > 200) continue;
    const size_t from = begin < kAround ? 0 : begin - kAround;
    if (each(AmountInWords{gib, all.substr(from, begin - from), all.substr(end, kAround)})) return;
  }
}

}  // namespace

std::optional<double> device_in_words(const std::string& text) {
  constexpr std::string_view kDevice =
      "gpu|vram|显存|显卡|顯存|的卡|单卡|3090|4090|2080|3080|4080|3060|4060|1080|3050|3070|2060|2070|1060|1070|1650|"
      "1660|4070|5060|5070|5080|5090|v100|a100|h100|a10|l4$|t4$|p100|p40|"
      "a6000|"
      "graphics card|video card|card$|colab";
  constexpr std::string_view kHost = " ram|ram$|内存|memory of the host|データ|数据|disk|硬盘|model|模型";
  std::optional<double> least;
  each_amount(text, [&](const AmountInWords& amount) {
    const std::string_view behind = amount.behind;
    const std::string_view first = behind.substr(0, std::min(behind.find_first_of(",.;，。、"), size_t{8}));
    if (!any_word(first, kHost).empty() || told_as_used(amount.before, behind)) return false;
    const bool near = !any_word(behind, kDevice).empty() || !any_word(amount.before, kDevice).empty();
    if (near && (!least || amount.gib * 0x1p30 < *least)) least = amount.gib * 0x1p30;
    return false;
  });
  return least;
}

bool tells_a_use(const std::string& text) {
  bool told = false;
  each_amount(text, [&](const AmountInWords& amount) { return told = told_as_used(amount.before, amount.behind); });
  return told;
}

int64_t devices_in_words(const std::string& text) {
  int64_t most = 1;
  for (const std::string_view counted :
       {"卡",     "张",     "块",     "枚",    "x a100", "xa100", "xa800", "x a800", "x80g",  "x40g",
        "x24g",   "x h100", "xh100",  "*a100", "x v100", "*v100", "*3090", "*4090",  "x3090", "x4090",
        "x 3090", "x 4090", "x 16g",  "x 24g", "x 32g",  "x 40g", "x 48g", "x 80g",  "x16g",  "x32g",
        "x48g",   "*16g",   "*24g",   "*32g",  "*40g",   "*48g",  "*80g",  " a100",  " h100", " h200",
        " v100",  " l40",   " a6000", " 3090", " 4090",  " rtx",  " t4",   " gpus"})
    for (size_t at = find_text(text, counted); at != std::string::npos; at = find_text(text, counted, at + 1)) {
      size_t end = at;
      if (end > 0 && text[end - 1] == ' ') --end;
      if (end > 0 && text[end - 1] >= '2' && text[end - 1] <= '8' && (end == 1 || !in_a_number(text[end - 2])))
        most = std::max<int64_t>(most, text[end - 1] - '0');
    }
  return most;
}

bool several_devices_in_words(const std::string& text) {
  constexpr std::string_view kSeveral =
      "多卡|双卡|两张|两块|两卡|三张|四张|四卡|八卡|张卡|块卡|多gpu|多张|multi-gpu|multi gpu|multiple gpus|two gpus|"
      "several gpus|four gpus|eight gpus|all gpus|both gpus|gpus|複数のgpu|複数gpu|2枚|4枚|8枚";
  if (!any_word(text, kSeveral).empty()) return true;
  if (devices_in_words(text) > 1) return true;
  return !gpu_in_words(text) && gpu_in_words(text, true);  // "two 3090", "2 x a6000"
}

std::optional<ModelWords> model_in_words(const std::string& text) {
  std::optional<ModelWords> least;
  for (size_t at = text.find('b'); at != std::string::npos; at = text.find('b', at + 1)) {
    if (at == 0 || !digit(text[at - 1]) || (at + 1 < text.size() && in_a_word(text[at + 1]))) continue;
    const size_t begin = begin_of_number(text, at);
    // Part of a hash or of a longer name ("0x1b", "h5b").
    if (begin == at || text.compare(begin, 2, "0x") == 0) continue;
    if (begin > 0 && in_a_word(text[begin - 1]) && !behind_a_family(text, begin)) continue;
    const double size = billions(text.substr(begin, at - begin));
    if (size < kLeast || size > kMost || (least && least->parameters <= size * 1e9)) continue;
    least = ModelWords{size * 1e9, text.substr(begin, at + 1 - begin), 16};
  }
  if (least) least->bits = bits_in(text);
  return least;
}

}  // namespace headroom::doctor
