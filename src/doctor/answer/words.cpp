#include "doctor/answer/words.h"

#include <algorithm>
#include <array>

namespace headroom::doctor {
namespace {

template <size_t N>
bool says(const std::string& log, const std::array<std::string_view, N>& words) {
  return std::any_of(words.begin(), words.end(),
                     [&](std::string_view word) { return log.find(word) != std::string::npos; });
}

constexpr std::array<std::string_view, 8> kHost = {"cpu内存",     "cpu 内存",   "cpu memory", "cpu ram",
                                                   "host memory", "system ram", "主机内存",   "内存暴涨"};
constexpr std::array<std::string_view, 9> kRanOut = {"oom", "out of memory", "killed", "exhaust", "crash",
                                                     "爆",  "溢出",          "不足",   "崩"};
constexpr std::array<std::string_view, 5> kDevice = {"cuda", "vram", "gpu memory", "显存", "hip out of memory"};
constexpr std::array<std::string_view, 4> kTorch = {"torch", "site-packages/transformers", "accelerate", "deepspeed"};
constexpr std::array<std::string_view, 3> kTensorflow = {"tensorflow", "err == cudasuccess", "tf.session"};
constexpr std::array<std::string_view, 2> kJax = {"jaxlib", "jax."};

// The line that says it.
std::string line_of_host(const std::string& log) {
  for (size_t at = 0; at < log.size();) {
    const size_t end = std::min(log.find('\n', at), log.size());
    std::string line = log.substr(at, end - at);
    if (says(line, kHost) && says(line, kRanOut)) return line;
    at = end + 1;
  }
  return {};
}

}  // namespace

void take_words(Case& incident) {
  const std::string& log = incident.log_text;
  if (incident.messages.empty()) {
    if (says(log, kDevice)) return;
    std::string line = line_of_host(log);
    if (line.empty()) return;
    Message& message = incident.messages.emplace_back();
    message.text = std::move(line);
    message.framework = "host";
    message.format = "words";
    message.phase = "host_ram";
    message.hints = {"host_ram"};
    return;
  }
  if (says(log, kTorch)) return;
  for (Message& message : incident.messages) {
    const bool bare = message.framework == "pytorch-cuda" && message.figures.empty() && message.frames.empty();
    if (!bare) continue;
    if (says(log, kTensorflow)) message.framework = "tensorflow";
    if (says(log, kJax)) message.framework = "jax";
  }
}

}  // namespace headroom::doctor
