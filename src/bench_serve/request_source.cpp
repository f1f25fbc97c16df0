#include "bench_serve/request_source.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <fstream>

#include "base/counter_random.h"
#include "base/error.h"
#include "formats/json.h"

namespace headroom::bench {
namespace {

constexpr std::array kWords{"time",  "house",  "water", "light",  "small", "green",  "river", "stone",
                            "voice", "paper",  "night", "music",  "plant", "winter", "story", "horse",
                            "cloud", "bridge", "apple", "table",  "road",  "field",  "ship",  "letter",
                            "glass", "smile",  "wind",  "garden", "point", "hand",   "open",  "walk"};

// Random bits for one purpose of one request.
class Draws {
 public:
  Draws(uint64_t seed, int64_t index, uint64_t purpose)
      : key_(mix64(mix64(mix64(seed) ^ static_cast<uint64_t>(index)) ^ purpose)) {}
  double unit() { return unit_interval(mix64(key_ + count_++)); }
  size_t below(size_t bound) { return std::min(bound - 1, static_cast<size_t>(unit() * static_cast<double>(bound))); }
  // From length x (1 - ratio) to length x (1 + ratio), at least 1.
  int64_t length(int64_t length, double ratio) {
    const double middle = static_cast<double>(length);
    const int64_t least = std::max<int64_t>(1, static_cast<int64_t>(std::floor(middle * (1 - ratio))));
    const int64_t most = std::max(least, static_cast<int64_t>(std::ceil(middle * (1 + ratio))));
    return least + static_cast<int64_t>(below(static_cast<size_t>(most - least + 1)));
  }

 private:
  uint64_t key_;
  uint64_t count_ = 0;
};

// The fields that every request has.
Json common_body(const LoadOptions& options, int64_t max_tokens) {
  Json body = {{"model", options.model},
               {"stream", true},
               {"stream_options", {{"include_usage", true}}},
               {"max_tokens", max_tokens},
               {"temperature", options.temperature}};
  if (options.ignore_eos) body["ignore_eos"] = true;
  return body;
}

Json one_message(Json text) { return Json::array({{{"role", "user"}, {"content", std::move(text)}}}); }

std::string dumped(const Json& body) { return body.dump(-1, ' ', false, Json::error_handler_t::replace); }

class RandomRequests final : public RequestSource {
 public:
  RandomRequests(const LoadOptions& options, WordTokens words) : options_(options), words_(std::move(words)) {
    if (words_.ids.empty()) return;
    Draws draws(options.seed, 0, 1);
    for (int64_t i = 0; i < options.random_prefix_len; ++i) prefix_.push_back(id(draws));
  }

  std::string body(int64_t index) const override {
    Draws lengths(options_.seed, index, 2), text(options_.seed, index, 3);
    const int64_t input = lengths.length(options_.random_input_len, options_.random_range_ratio);
    Json body = common_body(options_, lengths.length(options_.random_output_len, options_.random_range_ratio));
    const bool chat = options_.endpoint == Endpoint::chat;
    if (!chat && !words_.ids.empty()) {
      std::vector<int64_t> prompt = prefix_;
      for (int64_t i = 0; i < input; ++i) prompt.push_back(id(text));
      body["prompt"] = std::move(prompt);
      return dumped(body);
    }
    Draws prefix(options_.seed, 0, 1);
    std::string prompt = words_of(prefix, options_.random_prefix_len) + words_of(text, input);
    if (chat)
      body["messages"] = one_message(std::move(prompt));
    else
      body["prompt"] = std::move(prompt);
    return dumped(body);
  }

 private:
  int64_t id(Draws& draws) const { return words_.ids[draws.below(words_.ids.size())]; }

  // Words of about this many tokens; at least one word of at least one token.
  std::string words_of(Draws& draws, int64_t tokens) const {
    if (tokens == 0) return {};
    const int64_t count =
        std::max<int64_t>(1, std::llround(static_cast<double>(tokens) / std::max(0.1, words_.tokens_per_word)));
    std::string text;
    for (int64_t i = 0; i < count; ++i) text += std::string(kWords[draws.below(kWords.size())]) + ' ';
    return text;
  }

  const LoadOptions options_;
  const WordTokens words_;
  std::vector<int64_t> prefix_;
};

class FileRequests final : public RequestSource {
 public:
  explicit FileRequests(const LoadOptions& options) : options_(options) {
    constexpr size_t kMostBytes = size_t{1} << 30;
    std::ifstream file(options.dataset);
    if (!file)
      throw Error(ErrorKind::usage, fmt::format("--dataset {} cannot be read", options.dataset.string()),
                  "give a file of JSON lines");
    int64_t number = 1;
    for (std::string line; std::getline(file, line); ++number) {
      if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
      bodies_.push_back(body_of(line, fmt::format("{}:{}", options.dataset.string(), number)));
      bytes_ += bodies_.back().size();
      if (bytes_ > kMostBytes)
        throw Error(ErrorKind::format, fmt::format("{} holds more than 1 GiB", options.dataset.string()),
                    "give a smaller file: its lines are used again from the first");
    }
    if (bodies_.empty())
      throw Error(ErrorKind::format, fmt::format("{} holds no request", options.dataset.string()),
                  "give lines such as {\"prompt\": \"Once upon a time\", \"max_tokens\": 40}");
  }

  std::string body(int64_t index) const override { return bodies_[static_cast<size_t>(index) % bodies_.size()]; }

 private:
  std::string body_of(std::string_view line, const std::string& place) const {
    Json row = parse_json(line, place);
    const auto refuse = [&](const char* why, const char* remedy) {
      throw Error(ErrorKind::format, fmt::format("{}: {}", place, why), remedy);
    };
    if (!row.is_object()) refuse("the line is not a JSON object", "write {\"prompt\": TEXT} or {\"messages\": [...]}");
    const bool chat = options_.endpoint == Endpoint::chat;
    if (row.contains("messages") == row.contains("prompt"))
      refuse("the line needs either prompt or messages", "write {\"prompt\": TEXT} or {\"messages\": [...]}");
    if (row.contains("messages") && !chat) refuse("messages are for chats", "add --endpoint chat");
    if (chat && row.contains("prompt")) {
      if (!row["prompt"].is_string())
        refuse("a chat's prompt must be a text", "write a text, or leave out --endpoint chat");
      row["messages"] = one_message(std::move(row["prompt"]));
      row.erase("prompt");
    }
    if (row.contains("output_tokens") && !row.contains("max_tokens")) row["max_tokens"] = row["output_tokens"];
    row.erase("output_tokens");
    Json body = common_body(options_, options_.random_output_len);
    if (row.contains("max_completion_tokens")) body.erase("max_tokens");
    body.update(row);
    body["stream"] = true;
    return dumped(body);
  }

  const LoadOptions options_;
  std::vector<std::string> bodies_;
  size_t bytes_ = 0;
};

}  // namespace

std::string sample_words() {
  std::string text;
  for (const char* word : kWords) text += std::string(word) + ' ';
  return text;
}

int64_t sample_word_count() { return static_cast<int64_t>(kWords.size()); }

std::unique_ptr<RequestSource> random_requests(const LoadOptions& options, WordTokens words) {
  return std::make_unique<RandomRequests>(options, std::move(words));
}

std::unique_ptr<RequestSource> file_requests(const LoadOptions& options) {
  return std::make_unique<FileRequests>(options);
}

}  // namespace headroom::bench
