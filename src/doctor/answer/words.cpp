#include "doctor/answer/words.h"

#include <algorithm>
#include <array>

#include "doctor/remedies/cpu_alone.h"
#include "doctor/remedies/model_words.h"
#include "doctor/remedies/program_words.h"
#include "doctor/remedies/told_growth.h"
#include "doctor/remedies/told_stage.h"
#include "doctor/remedies/which_program.h"

namespace headroom::doctor {
namespace {

template <size_t N>
bool says(std::string_view log, const std::array<std::string_view, N>& words) {
  return std::any_of(words.begin(), words.end(),
                     [&](std::string_view word) { return log.find(word) != std::string_view::npos; });
}

constexpr std::array<std::string_view, 4> kTorch = {"torch", "site-packages/transformers", "accelerate", "deepspeed"};
// With libraries that run on it alone.
constexpr std::array<std::string_view, 17> kTensorflow = {"control_flow_ops",
                                                          "tensorflow",
                                                          "err == cudasuccess",
                                                          "tf.session",
                                                          "keras",
                                                          "model.fit(",
                                                          "tf.data",
                                                          "import tensorflow",
                                                          "tf.config",
                                                          "textgenrnn",
                                                          "gpt_2_simple",
                                                          "mask_rcnn",
                                                          "stellargraph",
                                                          "deeplabcut",
                                                          "autokeras",
                                                          "report_tensor_allocations",
                                                          "bfc_allocator"};
// Toolboxes of PyTorch with a Mask R-CNN of their own.
constexpr std::string_view kDetectors = "detectron2|ims_per_batch|mmdet|maskrcnn_benchmark|maskrcnn-benchmark";
constexpr std::array<std::string_view, 8> kJax = {"jaxlib", "jax.",      "pi0_",     "maxtext",
                                                  "t5x",    "alphafold", "levanter", "import jax"};

constexpr std::string_view kDeviceMemory =
    "显存|顯存|vram|cuda|gpu memory|gpu ram|gpu's ram|video ram|graphics ram|gpu内存|gpu 内存|gpuメモリ|gpu メモリ|hip "
    "out";
constexpr std::array<std::string_view, 18> kDevice = {"cuda", "wgpu", "vulkan", "vram", "gpu",  "显存",
                                                      "显卡", "a100", "h100",   "rtx",  "gtx",  "4090",
                                                      "3090", "v100", "顯存",   "单卡", "多卡", "卡"};
constexpr std::array<std::string_view, 12> kProgram = {"train",    "epoch",     "batch", "finetun",
                                                       "fine-tun", "inference", "训练",  "微调",
                                                       "推理",     "学習",      "推論",  "ファインチューニング"};
constexpr std::string_view kHostMemory =
    "cpu内存|cpu 内存|cpu memory|cpu ram|process memory|host memory|system ram|system memory|main "
    "memory|主机内存|系统内存|物理内存|"
    "free -h|free -g|free -m|ram$|メインメモリ|システムメモリ|memoryerror|cannot allocate "
    "memory|pcが固ま|データを全部|メモリに載せ|pc "
    "freezes|computer freezes|machine freezes|"
    "死机|电脑卡死";
constexpr std::string_view kSharedMemory = "共享内存|共用内存|共有メモリ|shared memory|/dev/shm|shm-size|shm_size|shm$";
// Where a program of this kind ends by a bus error, its batches found no room there.
constexpr std::string_view kUsesSharedMemory = "dataloader|num_workers|docker|container|容器|コンテナ";

constexpr std::string_view kFullFile = "errno 28|no space left on device";
// Stages that only the host knows.
constexpr std::string_view kPreparing =
    "llama-quantize|llama.cpp quantize|convert_hf|convert-hf|to "
    "gguf|preprocess|pre-process|loading entire dataset|loading the entire dataset|loading the whole dataset|load the "
    "entire dataset|load the whole dataset|training on large datasets|on large datasets "
    "raises|tokenizing|tokenising|tokenization |tokenize$|tokenise$|tokenized|read_csv|loading "
    "data|load the data|loading the data|data loading|"
    "预处理|加载数据|读取数据|数据处理|前処理|トークナイズ|データの読み込み|データを読み込";
constexpr std::string_view kSilentExit =
    "静默退出|闪退|请按任意键继续|silently exit|exits silently|silent exit|closes itself|without any error|"
    "without error message|no error message|エラーなしで落ち|エラーも出ず";
constexpr std::string_view kLoading =
    "models are loaded|model is loaded|models loaded|loading|load model|from_pretrained|加载|载入|読み込み|ロード";

// "内存" is host memory by the word, and is said of a GPU's as well: beside a GPU only these say that the host's is
// meant.
constexpr std::string_view kEither = "内存";
constexpr std::string_view kOfTheHost =
    "显存|顯存|cpu|ram$|swap|虚拟内存|物理内存|系统内存|主机|机器|服务器|dataloader|num_workers|num_proc|offload|"
    "数据|编译|死机|闪退|子进程|多进程|memoryerror|hostmemory|docker|容器|云主机";

bool of_device(std::string_view clause) { return !affirmed_word(clause, kDeviceMemory).empty(); }
bool of_shared(std::string_view clause) { return !any_word(clause, kSharedMemory).empty(); }
bool says_ran_out(std::string_view text) { return !told_out_of_memory(text).empty(); }
bool says_killed(std::string_view text) { return !told_killed(text).empty(); }
bool in_ascii(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) < 0x80; });
}

// The first sentence that has a clause for which `fits` says true; empty where none is.
template <typename Fits>
std::string first_sentence(const std::string& log, Fits fits) {
  std::string found;
  each_sentence(log, [&](std::string_view sentence) {
    each_clause(sentence, [&](std::string_view clause) {
      if (fits(clause)) found = sentence;
      return !found.empty();
    });
    return !found.empty();
  });
  return found;
}
// The same of a sentence as a whole.
template <typename Fits>
std::string first_whole_sentence(const std::string& log, Fits fits) {
  std::string found;
  each_sentence(log, [&](std::string_view sentence) {
    if (fits(sentence)) found = sentence;
    return !found.empty();
  });
  return found;
}
template <typename Fits>
bool any_clause(const std::string& log, Fits fits) {
  return !first_sentence(log, fits).empty();
}

// A sentence of people's own that says so. Lines of a log are in ASCII.
bool of_the_host_in_words(const std::string& log) {
  bool found = false;
  each_sentence(log, [&](std::string_view sentence) {
    found = !in_ascii(sentence) && !any_word(sentence, kOfTheHost).empty();
    return found;
  });
  return found;
}

// "11 GB of RAM" of a GPU, by people to whom all memory is RAM: the log speaks of GPUs and of nothing of the host's.
constexpr std::array<std::string_view, 5> kAmountOfRam = {"gb of ram", "gb in ram", "gib of ram", "gigs of ram",
                                                          "g of ram"};
constexpr std::string_view kOfAnyHost =
    "cpu|system|host|swap|computer|pc$|machine|laptop|loader|worker|num_proc|memoryerror|numpy|pandas|docker|container|"
    "colab|kaggle|notebook|offload";
bool ram_of_a_gpu(const std::string& log) {
  return log.find("gpu") != std::string::npos && any_word(log, kOfAnyHost).empty() && !any_clause(log, says_killed);
}

// Which clauses of a log speak of host memory.
class HostClauses {
 public:
  explicit HostClauses(const std::string& log)
      : either_(!says(log, kDevice) || any_clause(log, says_killed) || of_the_host_in_words(log)),
        gpu_(ram_of_a_gpu(log)) {}
  bool operator()(std::string_view clause) const {
    if (of_device(clause) || of_shared(clause) || (gpu_ && says(clause, kAmountOfRam))) return false;
    return !any_word(clause, kHostMemory).empty() || !any_word(clause, kPreparing).empty() ||
           (either_ && !any_word(clause, kEither).empty());
  }

 private:
  bool either_;  // the word for either is said of the host's
  bool gpu_;     // an amount of RAM is a GPU's
};

std::string told_of_shared_memory(const std::string& log) {
  std::string line = first_sentence(
      log, [](std::string_view clause) { return of_shared(clause) && (says_ran_out(clause) || says_killed(clause)); });
  if (line.empty())
    line = first_sentence(log, [](std::string_view clause) { return !any_word(clause, kFullFile).empty(); });
  if (line.empty() && !any_word(log, kUsesSharedMemory).empty())
    line = first_sentence(log, [](std::string_view clause) { return !any_word(clause, "bus error").empty(); });
  return line;
}

// A device's memory: by its name, or where the log speaks of a device or a program and of no host memory.
std::string told_of_device(const std::string& log, const HostClauses& of_host, bool by_name) {
  if (by_name)
    return first_sentence(
        log, [](std::string_view clause) { return of_device(clause) && says_ran_out(clause) && !says_killed(clause); });
  if (!says(log, kDevice) && (!says(log, kProgram) || any_clause(log, of_host))) return {};
  if (any_clause(log, says_killed)) return {};
  return first_sentence(log, [&](std::string_view clause) { return says_ran_out(clause) && !of_host(clause); });
}

std::string told_of_host(const std::string& log, const HostClauses& of_host, bool by_name) {
  const auto failed = [&](std::string_view text) { return of_host(text) && (says_ran_out(text) || says_killed(text)); };
  if (by_name) {
    std::string found = first_sentence(log, failed);
    if (!found.empty()) return found;
    each_sentence(log, [&](std::string_view sentence) {
      if (failed(sentence)) found = sentence;
      return !found.empty();
    });
    return found;
  }
  std::string line = first_sentence(log, says_killed);
  if (line.empty() && any_clause(log, of_host)) line = first_sentence(log, says_ran_out);
  // A program that ends without a word while it loads a model.
  if (line.empty() && !any_word(log, kLoading).empty())
    line = first_sentence(log, [](std::string_view clause) { return !any_word(clause, kSilentExit).empty(); });
  return line;
}

// A device is assumed where a sentence tells how much was used ("from 21g to 38g"), and not of which memory.
bool leaves_the_memory_open(const std::string& line) { return tells_a_use(line) && !says(line, kDevice); }

// A title that says that a device of some size cannot load a model: the question is one of memory.
std::string told_of_a_model_that_does_not_load(const std::string& log) {
  constexpr std::string_view kCannot =
      "cannot load|can't load|can not load|unable to load|fails to load|failed to load|does not load|doesn't load|"
      "cannot run|can't run|unable to run|无法加载|加载失败|加载不了|无法启动|启动失败|跑不了|跑不起来|ロードでき|"
      "読み込めな";
  const std::string title = log.substr(0, log.find('\n'));
  return any_word(title, kCannot).empty() || !device_in_words(title) ? std::string() : title;
}

// A post about memory of the host that grows, without a failure.
std::string told_of_growth_on_the_host(const std::string& log, const HostClauses& of_host) {
  const std::string_view grows = told_growing(log);
  if (grows.empty() || !any_clause(log, of_host) || any_clause(log, of_device)) return {};
  std::string found;
  each_sentence(log, [&](std::string_view sentence) {
    if (!any_word(sentence, grows).empty()) found = sentence;
    return !found.empty();
  });
  return found;
}

// The same of a device's memory: people ask about it before it fails.
std::string told_of_growth_on_a_device(const std::string& log) {
  const std::string_view grows = told_growing(log);
  if (grows.empty()) return {};
  return first_whole_sentence(
      log, [&](std::string_view sentence) { return of_device(sentence) && !any_word(sentence, grows).empty(); });
}

// A server takes its share of a device whatever its model needs, and people ask why.
std::string told_of_a_share(const std::string& log) {
  constexpr size_t kShort = 4096;
  constexpr std::string_view kServers = "vllm|sglang|lmdeploy";
  constexpr std::string_view kTakes =
      "take|taking|uses|use$|using|usage|occup|consum|allocat|reserve|占用|占了|占满|吃显存|吃了|消費|占有";
  constexpr std::string_view kAsks = "why|how|reduce|although|so much|为什么|怎么|如何|这么|なぜ|どう|?|？",
                             kOfItsLog = "info$|warning$|error$|debug$";
  if (log.size() > kShort || any_word(log, kServers).empty()) return {};
  return first_whole_sentence(log, [&](std::string_view sentence) {
    const bool memory = of_device(sentence) || !any_word(sentence, "memory|显存|メモリ|gpu").empty();
    return memory && !any_word(sentence, kTakes).empty() && !any_word(sentence, kAsks).empty() &&
           any_word(sentence, kOfItsLog).empty();
  });
}

// Somebody asks about memory without a failure, or tells of one in words that are not known: the sentence that speaks
// of memory. A log that nobody wrote to somebody has none.
std::string told_about_memory(const std::string& log) {
  constexpr size_t kShort = 8192;
  constexpr std::string_view kToSomebody =
      "i$|i'm|my$|we$|how to|how can|how do|why$|please|thanks|thank you|hello|hi$|is "
      "there|请问|怎么|如何|我|吗|为什么|"
      "谢谢|でしょうか|ですか|ません|ください";
  constexpr std::string_view kMemory = "memory|vram|ram$|显存|内存|顯存|記憶體|メモリ";
  constexpr std::string_view kTells =
      "max$|maximum|reached|full|huge|too high|so high|so much|too much|much more|more memory|a lot of|lots of|require|"
      "need|taking up|takes up|take up|consum|used up|uses up|occup|reduc|limit|issue|problem|dies|died|crash|freez|"
      "hang|how much|how many|high ram|high memory|memory usage|ram usage|more and "
      "more|doubles|grows|increas|rises|leak|高|太大|需要|要求|减少|降低|多少|占|消費|必要|抑え|減ら|食う|使いすぎ";
  if (log.size() > kShort || any_word(log, kToSomebody).empty()) return {};
  return first_whole_sentence(log, [&](std::string_view sentence) {
    return sentence.find("file \"") == std::string_view::npos && !any_word(sentence, kMemory).empty() &&
           !any_word(sentence, kTells).empty();
  });
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
  const HostClauses of_host(log);
  const auto take = [&](std::string line, const char* framework, const char* phase, const char* hint) {
    if (line.empty()) return false;
    const bool open = std::string_view(framework) == "pytorch-cuda" && leaves_the_memory_open(line);
    Message message = told(std::move(line), framework);
    message.phase = phase;
    message.hints = {hint};
    if (open) message.hints.emplace_back("either_memory");
    incident.messages.push_back(std::move(message));
    return true;
  };
  if (take(told_of_shared_memory(log), "pytorch-dataloader", "data", "host_shm")) return;
  // "out of memory ... on my 3070 Ti 8GB": the sentence itself names the device.
  const auto of_a_card = [&](std::string_view sentence) {
    return says_ran_out(sentence) && !says_killed(sentence) && any_word(sentence, kHostMemory).empty() &&
           device_in_words(std::string(sentence)).has_value();
  };
  if (take(first_whole_sentence(log, of_a_card), "pytorch-cuda", "unknown", "no_numbers")) return;
  // "GPU内存", and later only "内存": a device's.
  const bool gpu = log.find("gpu内存") != std::string::npos || log.find("gpu 内存") != std::string::npos;
  if (gpu && take(first_sentence(log, says_ran_out), "pytorch-cuda", "unknown", "no_numbers")) return;
  // It ends without a word: no device says so.
  const bool silent = !any_word(log, kSilentExit).empty() && !any_word(log, kLoading).empty();
  if (silent && take(told_of_host(log, of_host, false), "host", "host_ram", "host_ram")) return;
  const bool without_device = !cpu_alone(log).empty();
  const auto fails = [](std::string_view clause) { return says_ran_out(clause) || says_killed(clause); };
  for (const bool by_name : {true, false}) {
    if (take(told_of_device(log, of_host, by_name), "pytorch-cuda", "unknown", "no_numbers")) return;
    if (without_device && take(first_sentence(log, fails), "host", "host_ram", "host_ram")) return;
    if (take(told_of_host(log, of_host, by_name), "host", "host_ram", "host_ram")) return;
  }
  if (take(told_of_a_model_that_does_not_load(log), "pytorch-cuda", "unknown", "no_numbers")) return;
  if (take(told_of_growth_on_the_host(log, of_host), "host", "host_ram", "host_ram")) {
    incident.messages.back().hints.emplace_back("grows");
    return;
  }
  if (take(told_of_growth_on_a_device(log), "pytorch-cuda", "unknown", "no_numbers")) {
    incident.messages.back().hints.emplace_back("grows");
    return;
  }
  if (take(told_of_a_share(log), "pytorch-cuda", "unknown", "no_numbers")) {
    incident.messages.back().hints.emplace_back("takes_a_share");
    return;
  }
  // A short text that says no more than this is of a device more often than not.
  constexpr size_t kShort = 4096;
  if (log.size() < kShort && take(first_sentence(log, says_ran_out), "pytorch-cuda", "unknown", "no_numbers")) return;
  const std::string asked = told_about_memory(log);
  const bool of_no_device = !says(log, kDevice) && any_clause(log, of_host);
  const bool host = !asked.empty() && (of_host(asked) || without_device || of_no_device) && !of_device(asked);
  if (take(asked, host ? "host" : "pytorch-cuda", host ? "host_ram" : "unknown", host ? "host_ram" : "no_numbers"))
    incident.messages.back().hints.emplace_back(told_growing(log).empty() ? "asks" : "grows");
}

// A launcher ends the other ranks after any failure. Where it prints signal 7 for the first, that one found no room in
// shared memory.
void read_the_signal(Case& incident) {
  constexpr std::string_view kBusError =
      "return code = -7|exitcode: -7|exitcode : -7|exit code -7|exit code: -7|signal 7 |(sigbus)|sigbus";
  if (any_word(incident.log_text, kBusError).empty()) return;
  for (Message& message : incident.messages) {
    if (message.framework != "launcher" || message.format != "killed_rank") continue;
    message.framework = "pytorch-dataloader";
    message.phase = "data";
    message.hints = {"host_shm"};
  }
}

}  // namespace

void take_words(Case& incident) {
  const std::string& log = incident.log_text;
  read_the_signal(incident);
  if (incident.messages.empty()) take_told(incident);
  const auto bare = [](const Message& message) {
    return message.framework == "pytorch-cuda" && message.figures.empty() && message.frames.empty();
  };
  const OtherProgram other = other_program(log, incident.setup_text);
  const bool pytorch = speaks_of_pytorch(log) || speaks_of_pytorch(incident.setup_text);
  for (Message& message : incident.messages)
    if (bare(message) && !other.name.empty())
      message.framework = other.name;
    else if (bare(message) && message.format == "torch_driver" && !pytorch)
      message.framework = "cuda";  // the driver's error, of whatever program
  if (says(log, kTorch)) return;
  const bool detectron = !any_word(log, kDetectors).empty();
  for (Message& message : incident.messages) {
    if (!bare(message)) continue;
    if (says(log, kTensorflow) && !detectron) message.framework = "tensorflow";
    if (says(log, kJax)) message.framework = "jax";
    if (named_framework(log, incident.setup_text) == "paddle") message.framework = "paddle";
  }
}

}  // namespace headroom::doctor
