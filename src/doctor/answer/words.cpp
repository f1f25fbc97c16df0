#include "doctor/answer/words.h"

#include <algorithm>
#include <array>

#include "doctor/remedies/told_stage.h"

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
constexpr std::array<std::string_view, 8> kTensorflow = {
    "tensorflow", "err == cudasuccess", "tf.session", "keras", "model.fit(",
    "tf.data",    "import tensorflow",  "tf.config"};
constexpr std::array<std::string_view, 2> kJax = {"jaxlib", "jax."};

constexpr std::array<std::string_view, 12> kDeviceInWords = {"cuda", "vram", "gpu", "显存", "显卡", "a100",
                                                             "h100", "rtx",  "gtx", "4090", "3090", "v100"};
constexpr std::array<std::string_view, 8> kProgram = {"train",    "epoch",     "batch", "finetun",
                                                      "fine-tun", "inference", "训练",  "学習"};
// "64g ram", "of ram": host memory, unless the line names a device.
constexpr std::string_view kRam = "ram$|内存";

// The first line for which `fits` returns true, else empty.
template <typename Fits>
std::string first_line(const std::string& log, Fits fits) {
  for (size_t at = 0; at < log.size();) {
    const size_t end = std::min(log.find('\n', at), log.size());
    std::string line = log.substr(at, end - at);
    if (fits(line)) return line;
    at = end + 1;
  }
  return {};
}

bool of_host(const std::string& line) {
  return says(line, kHost) || (!says(line, kDeviceInWords) && !any_word(line, kRam).empty());
}

std::string line_of_host(const std::string& log) {
  return first_line(log, [](const std::string& line) {
    return of_host(line) && (says(line, kRanOut) || !told_out_of_memory(line).empty());
  });
}

// The line about a device's memory, if the log names a device, or is about training and does not mention host memory.
std::string line_of_device(const std::string& log) {
  if (!says(log, kDeviceInWords) && (!says(log, kProgram) || !first_line(log, of_host).empty())) return {};
  return first_line(log, [](const std::string& line) { return !told_out_of_memory(line).empty() && !of_host(line); });
}

Message told(std::string line, std::string framework) {
  Message message;
  message.text = std::move(line);
  message.framework = std::move(framework);
  message.format = "words";
  message.hints = {"no_numbers"};
  return message;
}

void take_told(Case& incident) {
  const std::string& log = incident.log_text;
  if (std::string line = line_of_device(log); !line.empty()) {
    incident.messages.push_back(told(std::move(line), "pytorch-cuda"));
    return;
  }
  if (says(log, kDevice)) return;
  std::string line = line_of_host(log);
  if (line.empty() && !first_line(log, of_host).empty())
    line = first_line(log, [](const std::string& each) { return !told_out_of_memory(each).empty(); });
  if (line.empty()) return;
  Message message = told(std::move(line), "host");
  message.phase = "host_ram";
  message.hints = {"host_ram"};
  incident.messages.push_back(std::move(message));
}

}  // namespace

void take_words(Case& incident) {
  const std::string& log = incident.log_text;
  if (incident.messages.empty()) take_told(incident);
  if (says(log, kTorch)) return;
  for (Message& message : incident.messages) {
    const bool bare = message.framework == "pytorch-cuda" && message.figures.empty() && message.frames.empty();
    if (!bare) continue;
    if (says(log, kTensorflow)) message.framework = "tensorflow";
    if (says(log, kJax)) message.framework = "jax";
  }
}

}  // namespace headroom::doctor
