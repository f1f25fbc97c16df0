#include "doctor/remedies/posted_numbers.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdlib>

#include "base/find_text.h"
#include "doctor/remedies/told_stage.h"

namespace headroom::doctor {
namespace {

// Settings whose advice is always to lower them, the names under which posts have them, and the least value worth
// naming. A share (a least value below 1) is lowered by a fifth, a whole number by half.
struct LoweredSetting {
  std::string_view name, posted;
  double least = 1;
  bool image = false;  // the side of an image, which posts also give as "64x64"
};
constexpr std::string_view kContext = "max_model_len|max_seq_len|context_length|context_size|ctx_size|n_ctx|num_ctx",
                           kSide = "resolution|image_size|img_size|imgsz|--img|crop_size";
constexpr LoweredSetting kLoweredSettings[] = {
    {"num_ctx", "num_ctx|ollama_context_length|context_length", 512},
    {"OLLAMA_CONTEXT_LENGTH", "num_ctx|ollama_context_length|context_length", 512},
    {"-c", "-c|ctx_size|n_ctx|num_ctx|context_length", 512},
    {"--ctx-size", "-c|ctx_size|n_ctx|num_ctx|context_length", 512},
    {"--contextsize", "contextsize|context_size|context_length", 512},
    {"Context Length:", kContext, 512},
    {"--context-length", kContext, 512},
    {"--max-model-len", kContext, 512},
    {"vllm_max_model_len", "vllm_max_model_len|max_model_len", 512},
    {"--session-len", "session_len|max_seq_len|context_length", 512},
    {"--max-total-tokens", "max_total_tokens|max_input_tokens|max_input_length", 512},
    {"--max-input-tokens", "max_total_tokens|max_input_tokens|max_input_length", 256},
    {"--max-prefill-token-num", "max_prefill_token_num", 256},
    {"--max-num-batched-tokens", "max_num_batched_tokens", 256},
    {"--chunked-prefill-size", "chunked_prefill_size", 256},
    {"--max-batch-prefill-tokens", "max_batch_prefill_tokens", 256},
    {"--ubatch-size", "ubatch_size|n_ubatch|-ub", 32},
    {"--max-num-seqs", "max_num_seqs|max_num_seq"},
    {"--max-running-requests", "max_running_requests"},
    {"--max-concurrent-requests", "max_concurrent_requests"},
    {"--cuda-graph-max-bs", "cuda_graph_max_bs"},
    {"--gpu-memory-utilization", "gpu_memory_utilization", 0.1},
    {"gpu_memory_utilization", "gpu_memory_utilization|vllm_gpu_memory_utilization", 0.1},
    {"--mem-fraction-static", "mem_fraction_static", 0.1},
    {"--cache-max-entry-count", "cache_max_entry_count", 0.05},
    {"writer_batch_size", "writer_batch_size"},
    {"num_proc", "num_proc"},
    {"num_workers", "num_workers"},
    {"micro_batch_size", "micro_batch_size"},
    {"per_device_train_batch_size", "per_device_train_batch_size"},
    {"--train_batch_size", "train_batch_size"},
    {"--batch_size", "batch_size"},
    {"IMAGES_PER_GPU", "images_per_gpu"},
    {"--max_length", "max_length", 128},
    {"max_duration", "max_duration"},
    {"points_per_batch", "points_per_batch"},
    {"rec_batch_num", "rec_batch_num"},
    {"max_pixels", "max_pixels", 3136},
    {"MAX_PIXELS", "max_pixels", 3136},
    {"n_batch", "n_batch|-b", 32},
    {"-b", "n_batch|-b", 32},
    {"max_calib_samples", "max_calib_samples"},
    {"max_calib_seq_len", "max_calib_seq_len", 64},
    {"clip_seconds", "clip_seconds|-cl"},
    {"--segment", "segment"},
    {"--tile", "tile|tile_size", 32},
    {"--resolution", kSide, 64, true},
    {"-image_size", kSide, 64, true},
    {"--H", "--h|height", 64, true},
    {"--W", "--w|width", 64, true},
    {"max_image_size", "max_image_size|image_size", 256, true},
    {"det_limit_side_len", "det_limit_side_len", 64, true},
    {"canvas_size", "canvas_size", 64, true},
    {"MIN_SIZE_TRAIN", "min_size_train", 64, true},
    {"MAX_SIZE_TRAIN", "max_size_train", 64, true},
};
constexpr std::string_view kShards =
    "tensor_parallel_size|tensor_parallel|tensor_model_parallel_size|tp_size|tp|num_shard|mp_size|model_parallel_size|"
    "num_gpus";
// Advice to raise a setting says so; no number of it is lowered.
constexpr std::string_view kRaises = "more than now";

bool digit_of_value(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }
bool of_a_name(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '-'; }

// The name begins a line that is commented out: "  # max_seq_len=2028,".
bool commented_out(std::string_view post, size_t at) {
  while (at > 0 && (post[at - 1] == ' ' || post[at - 1] == '\t')) --at;
  if (at == 0 || post[at - 1] != '#') return false;
  --at;
  while (at > 0 && (post[at - 1] == ' ' || post[at - 1] == '\t')) --at;
  return at == 0 || post[at - 1] == '\n';
}

// The offset of the name at `from` or later, as a whole word; npos if there is none.
size_t find_name(std::string_view post, std::string_view name, size_t from) {
  const auto same = [&](char posted, char named) {
    return posted == named || (named == '_' && (posted == '-' || posted == ' '));
  };
  while (from < post.size()) {
    const auto found =
        std::search(post.begin() + static_cast<std::ptrdiff_t>(from), post.end(), name.begin(), name.end(), same);
    if (found == post.end()) break;
    const size_t at = static_cast<size_t>(found - post.begin());
    size_t begin = at;
    while (begin > 0 && post[begin - 1] == '-') --begin;
    if ((begin == 0 || !of_a_name(post[begin - 1])) && !commented_out(post, at)) return at;
    from = at + 1;
  }
  return std::string_view::npos;
}

// Where the number of the setting starts behind `at`: "num_ctx 4096", "num_ctx=4096", "\"num_ctx\": 4096", and in
// sentences "`writer_batch_size`. I tried to lower it to 10".
std::optional<size_t> number_at(std::string_view text, size_t at, bool sentence) {
  if (at < text.size() && of_a_name(text[at])) return std::nullopt;  // another, longer name
  size_t i = at;
  while (i < text.size() && std::string_view(" =:\"'`(").find(text[i]) != std::string_view::npos && i < at + 6) ++i;
  if (i > at && i < text.size() && digit_of_value(text[i])) return i;
  // ".5"
  if (i > at && i + 1 < text.size() && text[i] == '.' && digit_of_value(text[i + 1])) return i;
  if (!sentence) return std::nullopt;
  constexpr size_t kFarthest = 48;
  const std::string_view behind = text.substr(at, kFarthest);
  for (const std::string_view to : {" to ", " of ", " is ", " at ", "从", "到", "为", "成", "を"}) {
    const size_t word = behind.find(to);
    if (word == std::string_view::npos || behind.substr(0, word).find('\n') != std::string_view::npos) continue;
    i = at + word + to.size();
    while (i < text.size() && (text[i] == '`' || text[i] == ' ')) ++i;
    if (i < text.size() && digit_of_value(text[i])) return i;
  }
  return std::nullopt;
}

// The number at `begin`, up to `end`: "4096", "0.9", "32k".
struct Numeral {
  double value = 0;
  size_t end = 0;
  bool fraction = false;
};
Numeral numeral_at(std::string_view text, size_t begin) {
  constexpr double kKilo = 1024;
  Numeral number;
  number.end = begin;
  while (number.end < text.size() && digit_of_value(text[number.end])) ++number.end;
  const bool point = number.end + 1 < text.size() && text[number.end] == '.' && digit_of_value(text[number.end + 1]);
  if (point) {
    number.fraction = true;
    ++number.end;
    while (number.end < text.size() && digit_of_value(text[number.end])) ++number.end;
  }
  number.value =
      std::strtod(std::string(text.substr(begin, std::min<size_t>(number.end - begin, 16))).c_str(), nullptr);
  const bool kilo = number.end < text.size() && text[number.end] == 'k' &&
                    (number.end + 1 == text.size() || !of_a_name(text[number.end + 1]));
  if (kilo) number.value *= kKilo;
  return number;
}

// Both sides of an image, "512 x 512", "64*64": its longer side, and where the text of it ends.
struct Sides {
  size_t begin = 0, end = 0;
  int64_t longer = 0;
};
std::optional<Sides> sides_from(std::string_view text, size_t begin) {
  constexpr double kLeastSide = 16, kMostSide = 16384;
  const Numeral first = numeral_at(text, begin);
  size_t at = first.end;
  while (at < text.size() && text[at] == ' ' && at < first.end + 2) ++at;
  size_t times = 0;
  for (const std::string_view sign : {"x", "*", "×"})
    if (text.substr(at).starts_with(sign)) times = sign.size();
  at += times;
  while (at < text.size() && text[at] == ' ') ++at;
  if (times == 0 || at >= text.size() || !digit_of_value(text[at])) return std::nullopt;
  const Numeral second = numeral_at(text, at);
  for (const Numeral& side : {first, second})
    if (side.fraction || side.value < kLeastSide || side.value > kMostSide) return std::nullopt;
  return Sides{begin, second.end, static_cast<int64_t>(std::max(first.value, second.value))};
}

// The next such pair at `from` or later.
std::optional<Sides> next_sides(std::string_view text, size_t from) {
  for (size_t at = from; at < text.size(); ++at) {
    if (!digit_of_value(text[at]) || (at > 0 && (of_a_name(text[at - 1]) || text[at - 1] == '.'))) continue;
    if (const std::optional<Sides> sides = sides_from(text, at)) return sides;
  }
  return std::nullopt;
}

// The least value that the post has for the setting.
std::optional<double> least_posted(const LoweredSetting& setting, std::string_view post) {
  // Far smaller numbers count something else.
  constexpr double kFar = 16;
  const bool share = setting.least < 1;
  const double from = share ? 0.0 : std::max(1.0, setting.least / kFar);
  std::optional<double> least;
  for (const double value : posted_numbers(post, setting.posted))
    if (share ? value > 0 && value < 1 : value >= from) least = std::min(least.value_or(value), value);
  if (!setting.image) return least;
  if (const std::optional<int64_t> side = posted_side(post))
    least = std::min(least.value_or(static_cast<double>(*side)), static_cast<double>(*side));
  return least;
}

// What is offered instead of a value that is not below the posted one; below the setting's least: nothing is.
double lower_than(const LoweredSetting& setting, double posted) {
  constexpr double kFifth = 0.8, kSteps = 20;
  if (setting.least >= 1) return std::floor(posted / 2);
  return std::floor(posted * kFifth * kSteps + 1e-9) / kSteps;
}

std::string as_numeral(double value) {
  const bool whole = value == std::floor(value);
  return whole ? std::to_string(static_cast<int64_t>(value)) : fmt::format("{:g}", value);
}

// Lowers the setting wherever `text` has it. False: the advice is about this setting, which is at its least already.
bool lower_setting(const LoweredSetting& setting, std::string_view post, std::string& text) {
  for (size_t at = find_text(text, setting.name); at != std::string::npos; at = find_text(text, setting.name, at + 1)) {
    const std::optional<size_t> begin = number_at(text, at + setting.name.size(), false);
    if (!begin) continue;
    const Numeral now = numeral_at(text, *begin);
    const std::optional<double> has = least_posted(setting, post);
    if (!has || *has > now.value) continue;
    const double lowered = lower_than(setting, *has);
    const bool least = lowered < setting.least;
    if (least && text.find_first_of(",;") > at) return false;
    text.replace(*begin, now.end - *begin, as_numeral(least ? *has : lowered));
  }
  return true;
}

// The same for "(512 x 512)".
bool lower_sides(std::string_view post, std::string& text) {
  constexpr int64_t kLeastSide = 64;
  if (!next_sides(text, 0)) return true;
  const std::optional<int64_t> has = posted_side(post);
  if (!has) return true;
  for (std::optional<Sides> sides = next_sides(text, 0); sides; sides = next_sides(text, sides->end)) {
    if (sides->longer < *has) continue;
    if (*has / 2 < kLeastSide) return false;
    const std::string smaller = fmt::format("{0} x {0}", *has / 2);
    text.replace(sides->begin, sides->end - sides->begin, smaller);
    sides->end = sides->begin + smaller.size();
  }
  return true;
}

constexpr size_t kReadOfAPost = size_t{64} << 10;

}  // namespace

std::vector<double> posted_numbers(std::string_view post, std::string_view names) {
  std::vector<double> numbers;
  while (!names.empty()) {
    const std::string_view name = names.substr(0, names.find('|'));
    for (size_t at = find_name(post, name, 0); at != std::string_view::npos; at = find_name(post, name, at + 1))
      if (const std::optional<size_t> begin = number_at(post, at + name.size(), true))
        numbers.push_back(numeral_at(post, *begin).value);
    names.remove_prefix(std::min(names.size(), name.size() + 1));
  }
  return numbers;
}

std::optional<int64_t> posted_value(std::string_view post, std::string_view names) {
  constexpr double kMost = 1e12;
  std::optional<int64_t> least;
  for (const double number : posted_numbers(post, names))
    if (number >= 1 && number < kMost) {
      const int64_t value = static_cast<int64_t>(number);
      least = std::min(least.value_or(value), value);
    }
  return least;
}

std::vector<double> posted_shares(std::string_view post, std::string_view names) {
  std::vector<double> shares = posted_numbers(post, names);
  std::erase_if(shares, [](double share) { return share <= 0 || share >= 1; });
  return shares;
}

std::optional<int64_t> posted_side(std::string_view post) {
  constexpr size_t kAround = 32;
  constexpr std::string_view kOfImages =
      "image|img|picture|photo|resolution|size|crop|pixel|input|frame|video|patch|slice|图|分辨率|尺寸|像素|画像|"
      "解像度";
  std::optional<int64_t> least;
  for (std::optional<Sides> sides = next_sides(post, 0); sides; sides = next_sides(post, sides->end)) {
    const size_t begin = sides->begin < kAround ? 0 : sides->begin - kAround;
    if (any_word(post.substr(begin, sides->end + kAround - begin), kOfImages).empty()) continue;
    least = std::min(least.value_or(sides->longer), sides->longer);
  }
  return least;
}

int64_t posted_shards(std::string_view post) {
  constexpr double kMost = 4096;
  int64_t shards = 1;
  for (const double number : posted_numbers(post.substr(0, kReadOfAPost), kShards))
    if (number >= 1 && number <= kMost) shards = std::max(shards, static_cast<int64_t>(number));
  return shards;
}

std::string below_posted(const std::string& set, std::string_view post) {
  if (set.find(kRaises) != std::string::npos) return set;
  post = post.substr(0, kReadOfAPost);
  std::string text = set;
  for (const LoweredSetting& setting : kLoweredSettings)
    if (!lower_setting(setting, post, text)) return {};
  if (!lower_sides(post, text)) return {};
  return text;
}

}  // namespace headroom::doctor
