#include "doctor/remedies/posted_numbers.h"

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <vector>

#include "doctor/remedies/told_stage.h"

namespace headroom::doctor {
namespace {

// Settings that advice always lowers, their names in posts, and the least value worth naming.
struct Lowered {
  std::string_view name, posted;
  int64_t least = 1;
};
constexpr Lowered kLowered[] = {
    {"num_ctx", "num_ctx|ollama_context_length", 512},
    {"OLLAMA_CONTEXT_LENGTH", "num_ctx|ollama_context_length", 512},
    {"--ctx-size", "--ctx-size|ctx_size", 512},
    {"--contextsize", "--contextsize", 512},
    {"--max-model-len", "--max-model-len|max_model_len|max_seq_len", 512},
    {"--session-len", "--session-len|session_len", 512},
    {"--max-num-seqs", "--max-num-seqs|max_num_seqs"},
    {"writer_batch_size", "writer_batch_size"},
    {"num_proc", "num_proc"},
    {"num_workers", "num_workers"},
    {"micro_batch_size", "micro_batch_size"},
    {"per_device_train_batch_size", "per_device_train_batch_size"},
    {"--max_length", "--max_length", 128},
    {"max_duration", "max_duration|max-duration"},
    {"points_per_batch", "points_per_batch"},
    {"rec_batch_num", "rec_batch_num"},
    {"max_pixels", "max_pixels", 3136},
    {"n_batch", "n_batch", 32},
};

bool digit_of_value(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }
bool of_a_name(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '-'; }

// Where the setting's number starts at or after `at`: "num_ctx 4096", "num_ctx=4096", "\"num_ctx\": 4096", and with
// `sentence` also "`writer_batch_size`. I tried to lower it to 10".
std::optional<size_t> number_at(std::string_view text, size_t at, bool sentence) {
  if (at < text.size() && of_a_name(text[at])) return std::nullopt;  // a longer name
  size_t i = at;
  while (i < text.size() && std::string_view(" =:\"'`").find(text[i]) != std::string_view::npos && i < at + 6) ++i;
  if (i > at && i < text.size() && digit_of_value(text[i])) return i;
  if (!sentence) return std::nullopt;
  constexpr size_t kFarthest = 48;
  const std::string_view behind = text.substr(at, kFarthest);
  for (const std::string_view to : {" to ", "从", "到"}) {
    const size_t word = behind.find(to);
    if (word == std::string_view::npos || behind.substr(0, word).find('\n') != std::string_view::npos) continue;
    i = at + word + to.size();
    while (i < text.size() && text[i] == '`') ++i;
    if (i < text.size() && digit_of_value(text[i])) return i;
  }
  return std::nullopt;
}

}  // namespace

std::optional<int64_t> posted_value(std::string_view post, std::string_view names) {
  std::optional<int64_t> least;
  while (!names.empty()) {
    const std::string_view name = names.substr(0, names.find('|'));
    for (size_t at = post.find(name); at != std::string_view::npos; at = post.find(name, at + 1)) {
      if (at > 0 && of_a_name(post[at - 1]) && of_a_name(name.front())) continue;
      if (const std::optional<size_t> number = number_at(post, at + name.size(), true)) {
        const int64_t value = std::strtoll(std::string(post.substr(*number, 12)).c_str(), nullptr, 10);
        if (value > 0) least = std::min(least.value_or(value), value);
      }
    }
    names.remove_prefix(std::min(names.size(), name.size() + 1));
  }
  return least;
}

std::string below_posted(const std::string& set, std::string_view post) {
  constexpr size_t kRead = size_t{64} << 10;
  post = post.substr(0, kRead);
  std::string text = set;
  for (const Lowered& setting : kLowered) {
    for (size_t at = text.find(setting.name); at != std::string::npos; at = text.find(setting.name, at + 1)) {
      const std::optional<size_t> number = number_at(text, at + setting.name.size(), false);
      if (!number) continue;
      const std::optional<int64_t> has = posted_value(post, setting.posted);
      if (!has || *has > std::strtoll(text.c_str() + *number, nullptr, 10)) continue;
      const bool least = *has / 2 < setting.least;
      if (least && text.find_first_of(",;") > at) return {};  // the subject of the advice
      size_t end = *number;
      while (end < text.size() && digit_of_value(text[end])) ++end;
      text.replace(*number, end - *number, std::to_string(least ? *has : *has / 2));
    }
  }
  return text;
}

}  // namespace headroom::doctor
