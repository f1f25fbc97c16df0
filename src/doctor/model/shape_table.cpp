// Popular models. Geometry as in their published config.json; parameters are computed from it.
#include <algorithm>
#include <array>
#include <cctype>
#include <string_view>
#include <vector>

#include "doctor/model/shape_family.h"

namespace headroom::doctor {
namespace {

struct Row {
  const char* name;  // lower case, without the organisation
  const char* family;
  int32_t layers, hidden, heads, kv_heads, head_dim, intermediate, vocab, max_positions;
  bool tied;
  char dtype;  // b: bfloat16, h: float16, f: float32
  int32_t experts = 0, per_token = 0, moe_intermediate = 0, shared = 0, dense = 0;
};

// clang-format off
constexpr std::array kRows{
    Row{"llama-7b", "llama", 32, 4096, 32, 32, 128, 11008, 32000, 2048, false, 'h'},
    Row{"llama-13b", "llama", 40, 5120, 40, 40, 128, 13824, 32000, 2048, false, 'h'},
    Row{"llama-2-7b", "llama", 32, 4096, 32, 32, 128, 11008, 32000, 4096, false, 'h'},
    Row{"llama-2-13b", "llama", 40, 5120, 40, 40, 128, 13824, 32000, 4096, false, 'h'},
    Row{"llama-2-70b", "llama", 80, 8192, 64, 8, 128, 28672, 32000, 4096, false, 'h'},
    Row{"vicuna-7b", "llama", 32, 4096, 32, 32, 128, 11008, 32000, 4096, false, 'h'},
    Row{"vicuna-13b", "llama", 40, 5120, 40, 40, 128, 13824, 32000, 4096, false, 'h'},
    Row{"codellama-7b", "llama", 32, 4096, 32, 32, 128, 11008, 32016, 16384, false, 'b'},
    Row{"codellama-13b", "llama", 40, 5120, 40, 40, 128, 13824, 32016, 16384, false, 'b'},
    Row{"codellama-34b", "llama", 48, 8192, 64, 8, 128, 22016, 32000, 16384, false, 'b'},
    Row{"llama-3-8b", "llama", 32, 4096, 32, 8, 128, 14336, 128256, 8192, false, 'b'},
    Row{"llama-3-70b", "llama", 80, 8192, 64, 8, 128, 28672, 128256, 8192, false, 'b'},
    Row{"llama-3.1-8b", "llama", 32, 4096, 32, 8, 128, 14336, 128256, 131072, false, 'b'},
    Row{"llama-3.1-70b", "llama", 80, 8192, 64, 8, 128, 28672, 128256, 131072, false, 'b'},
    Row{"llama-3.1-405b", "llama", 126, 16384, 128, 8, 128, 53248, 128256, 131072, false, 'b'},
    Row{"llama-3.2-1b", "llama", 16, 2048, 32, 8, 64, 8192, 128256, 131072, true, 'b'},
    Row{"llama-3.2-3b", "llama", 28, 3072, 24, 8, 128, 8192, 128256, 131072, true, 'b'},
    Row{"llama-3.3-70b", "llama", 80, 8192, 64, 8, 128, 28672, 128256, 131072, false, 'b'},
    Row{"tinyllama-1.1b", "llama", 22, 2048, 32, 4, 64, 5632, 32000, 2048, false, 'b'},
    Row{"open-llama-3b", "llama", 26, 3200, 32, 32, 100, 8640, 32000, 2048, false, 'h'},
    Row{"smollm-135m", "llama", 30, 576, 9, 3, 64, 1536, 49152, 2048, true, 'b'},
    Row{"smollm-360m", "llama", 32, 960, 15, 5, 64, 2560, 49152, 2048, true, 'b'},
    Row{"smollm-1.7b", "llama", 24, 2048, 32, 32, 64, 8192, 49152, 2048, true, 'b'},
    Row{"smollm2-135m", "llama", 30, 576, 9, 3, 64, 1536, 49152, 8192, true, 'b'},
    Row{"smollm2-360m", "llama", 32, 960, 15, 5, 64, 2560, 49152, 8192, true, 'b'},
    Row{"smollm2-1.7b", "llama", 24, 2048, 32, 32, 64, 8192, 49152, 8192, true, 'b'},
    Row{"deepseek-llm-7b", "llama", 30, 4096, 32, 32, 128, 11008, 102400, 4096, false, 'b'},
    Row{"deepseek-coder-1.3b", "llama", 24, 2048, 16, 16, 128, 5504, 32256, 16384, false, 'b'},
    Row{"deepseek-coder-6.7b", "llama", 32, 4096, 32, 32, 128, 11008, 32256, 16384, false, 'b'},
    Row{"deepseek-coder-33b", "llama", 62, 7168, 56, 8, 128, 19200, 32256, 16384, false, 'b'},
    Row{"deepseek-r1-distill-llama-8b", "llama", 32, 4096, 32, 8, 128, 14336, 128256, 131072, false, 'b'},
    Row{"deepseek-r1-distill-llama-70b", "llama", 80, 8192, 64, 8, 128, 28672, 128256, 131072, false, 'b'},
    Row{"deepseek-r1-distill-qwen-1.5b", "qwen2", 28, 1536, 12, 2, 128, 8960, 151936, 131072, false, 'b'},
    Row{"deepseek-r1-distill-qwen-7b", "qwen2", 28, 3584, 28, 4, 128, 18944, 152064, 131072, false, 'b'},
    Row{"deepseek-r1-distill-qwen-14b", "qwen2", 48, 5120, 40, 8, 128, 13824, 152064, 131072, false, 'b'},
    Row{"deepseek-r1-distill-qwen-32b", "qwen2", 64, 5120, 40, 8, 128, 27648, 152064, 131072, false, 'b'},
    Row{"deepseek-v2-lite", "deepseek_v2", 27, 2048, 16, 16, 192, 10944, 102400, 163840, false, 'b', 64, 6, 1408, 2816, 1},
    Row{"deepseek-v3", "deepseek_v3", 61, 7168, 128, 128, 192, 18432, 129280, 163840, false, 'b', 256, 8, 2048, 2048, 3},
    Row{"deepseek-r1", "deepseek_v3", 61, 7168, 128, 128, 192, 18432, 129280, 163840, false, 'b', 256, 8, 2048, 2048, 3},
    Row{"mistral-7b", "mistral", 32, 4096, 32, 8, 128, 14336, 32000, 32768, false, 'b'},
    Row{"mistral-7b-v0.3", "mistral", 32, 4096, 32, 8, 128, 14336, 32768, 32768, false, 'b'},
    Row{"zephyr-7b-beta", "mistral", 32, 4096, 32, 8, 128, 14336, 32000, 32768, false, 'b'},
    Row{"mistral-nemo-2407", "mistral", 40, 5120, 32, 8, 128, 14336, 131072, 131072, false, 'b'},
    Row{"mistral-small-24b-2501", "mistral", 40, 5120, 32, 8, 128, 32768, 131072, 32768, false, 'b'},
    Row{"mixtral-8x7b", "mixtral", 32, 4096, 32, 8, 128, 14336, 32000, 32768, false, 'b', 8, 2, 14336},
    Row{"mixtral-8x22b", "mixtral", 56, 6144, 48, 8, 128, 16384, 32768, 65536, false, 'b', 8, 2, 16384},
    Row{"qwen1.5-0.5b", "qwen2", 24, 1024, 16, 16, 64, 2816, 151936, 32768, true, 'b'},
    Row{"qwen1.5-1.8b", "qwen2", 24, 2048, 16, 16, 128, 5504, 151936, 32768, false, 'b'},
    Row{"qwen1.5-4b", "qwen2", 40, 2560, 20, 20, 128, 6912, 151936, 32768, false, 'b'},
    Row{"qwen1.5-7b", "qwen2", 32, 4096, 32, 32, 128, 11008, 151936, 32768, false, 'b'},
    Row{"qwen1.5-14b", "qwen2", 40, 5120, 40, 40, 128, 13696, 152064, 32768, false, 'b'},
    Row{"qwen2-0.5b", "qwen2", 24, 896, 14, 2, 64, 4864, 151936, 131072, true, 'b'},
    Row{"qwen2-1.5b", "qwen2", 28, 1536, 12, 2, 128, 8960, 151936, 131072, true, 'b'},
    Row{"qwen2-7b", "qwen2", 28, 3584, 28, 4, 128, 18944, 152064, 131072, false, 'b'},
    Row{"qwen2-72b", "qwen2", 80, 8192, 64, 8, 128, 29568, 152064, 131072, false, 'b'},
    Row{"qwen2.5-0.5b", "qwen2", 24, 896, 14, 2, 64, 4864, 151936, 32768, true, 'b'},
    Row{"qwen2.5-1.5b", "qwen2", 28, 1536, 12, 2, 128, 8960, 151936, 32768, true, 'b'},
    Row{"qwen2.5-3b", "qwen2", 36, 2048, 16, 2, 128, 11008, 151936, 32768, true, 'b'},
    Row{"qwen2.5-7b", "qwen2", 28, 3584, 28, 4, 128, 18944, 152064, 131072, false, 'b'},
    Row{"qwen2.5-14b", "qwen2", 48, 5120, 40, 8, 128, 13824, 152064, 131072, false, 'b'},
    Row{"qwen2.5-32b", "qwen2", 64, 5120, 40, 8, 128, 27648, 152064, 131072, false, 'b'},
    Row{"qwen2.5-72b", "qwen2", 80, 8192, 64, 8, 128, 29568, 152064, 131072, false, 'b'},
    Row{"qwen2.5-coder-7b", "qwen2", 28, 3584, 28, 4, 128, 18944, 152064, 32768, false, 'b'},
    Row{"qwen2.5-coder-32b", "qwen2", 64, 5120, 40, 8, 128, 27648, 152064, 32768, false, 'b'},
    Row{"qwq-32b", "qwen2", 64, 5120, 40, 8, 128, 27648, 152064, 131072, false, 'b'},
    Row{"qwen3-0.6b", "qwen3", 28, 1024, 16, 8, 128, 3072, 151936, 40960, true, 'b'},
    Row{"qwen3-1.7b", "qwen3", 28, 2048, 16, 8, 128, 6144, 151936, 40960, true, 'b'},
    Row{"qwen3-4b", "qwen3", 36, 2560, 32, 8, 128, 9728, 151936, 40960, true, 'b'},
    Row{"qwen3-8b", "qwen3", 36, 4096, 32, 8, 128, 12288, 151936, 40960, false, 'b'},
    Row{"qwen3-14b", "qwen3", 40, 5120, 40, 8, 128, 17408, 151936, 40960, false, 'b'},
    Row{"qwen3-32b", "qwen3", 64, 5120, 64, 8, 128, 25600, 151936, 40960, false, 'b'},
    Row{"qwen3-30b-a3b", "qwen3_moe", 48, 2048, 32, 4, 128, 6144, 151936, 40960, false, 'b', 128, 8, 768},
    Row{"qwen3-235b-a22b", "qwen3_moe", 94, 4096, 64, 4, 128, 12288, 151936, 40960, false, 'b', 128, 8, 1536},
    Row{"gemma-2b", "gemma", 18, 2048, 8, 1, 256, 16384, 256000, 8192, true, 'b'},
    Row{"gemma-7b", "gemma", 28, 3072, 16, 16, 256, 24576, 256000, 8192, true, 'b'},
    Row{"gemma-2-2b", "gemma2", 26, 2304, 8, 4, 256, 9216, 256000, 8192, true, 'b'},
    Row{"gemma-2-9b", "gemma2", 42, 3584, 16, 8, 256, 14336, 256000, 8192, true, 'b'},
    Row{"gemma-2-27b", "gemma2", 46, 4608, 32, 16, 128, 36864, 256000, 8192, true, 'b'},
    Row{"gemma-3-270m", "gemma3_text", 18, 640, 4, 1, 256, 2048, 262144, 32768, true, 'b'},
    Row{"gemma-3-1b", "gemma3_text", 26, 1152, 4, 1, 256, 6912, 262144, 32768, true, 'b'},
    Row{"gemma-3-4b", "gemma3_text", 34, 2560, 8, 4, 256, 10240, 262208, 131072, true, 'b'},
    Row{"gemma-3-12b", "gemma3_text", 48, 3840, 16, 8, 256, 15360, 262208, 131072, true, 'b'},
    Row{"gemma-3-27b", "gemma3_text", 62, 5376, 32, 16, 128, 21504, 262208, 131072, true, 'b'},
    Row{"phi-1.5", "phi", 24, 2048, 32, 32, 64, 8192, 51200, 2048, false, 'h'},
    Row{"phi-2", "phi", 32, 2560, 32, 32, 80, 10240, 51200, 2048, false, 'h'},
    Row{"phi-3-mini-4k", "phi3", 32, 3072, 32, 32, 96, 8192, 32064, 4096, false, 'b'},
    Row{"phi-3-mini-128k", "phi3", 32, 3072, 32, 32, 96, 8192, 32064, 131072, false, 'b'},
    Row{"phi-3-medium-4k", "phi3", 40, 5120, 40, 10, 128, 17920, 32064, 4096, false, 'b'},
    Row{"phi-3.5-mini", "phi3", 32, 3072, 32, 32, 96, 8192, 32064, 131072, false, 'b'},
    Row{"phi-4", "phi3", 40, 5120, 40, 10, 128, 17920, 100352, 16384, false, 'b'},
    Row{"phi-4-mini", "phi3", 32, 3072, 24, 8, 128, 8192, 200064, 131072, true, 'b'},
    Row{"pythia-14m", "gpt_neox", 6, 128, 4, 4, 32, 512, 50304, 2048, false, 'h'},
    Row{"pythia-70m", "gpt_neox", 6, 512, 8, 8, 64, 2048, 50304, 2048, false, 'h'},
    Row{"pythia-160m", "gpt_neox", 12, 768, 12, 12, 64, 3072, 50304, 2048, false, 'h'},
    Row{"pythia-410m", "gpt_neox", 24, 1024, 16, 16, 64, 4096, 50304, 2048, false, 'h'},
    Row{"pythia-1b", "gpt_neox", 16, 2048, 8, 8, 256, 8192, 50304, 2048, false, 'h'},
    Row{"pythia-1.4b", "gpt_neox", 24, 2048, 16, 16, 128, 8192, 50304, 2048, false, 'h'},
    Row{"pythia-2.8b", "gpt_neox", 32, 2560, 32, 32, 80, 10240, 50304, 2048, false, 'h'},
    Row{"pythia-6.9b", "gpt_neox", 32, 4096, 32, 32, 128, 16384, 50432, 2048, false, 'h'},
    Row{"pythia-12b", "gpt_neox", 36, 5120, 40, 40, 128, 20480, 50688, 2048, false, 'h'},
    Row{"gpt-neox-20b", "gpt_neox", 44, 6144, 64, 64, 96, 24576, 50432, 2048, false, 'h'},
    Row{"gpt-j-6b", "gptj", 28, 4096, 16, 16, 256, 16384, 50400, 2048, false, 'f'},
    Row{"gpt2", "gpt2", 12, 768, 12, 12, 64, 3072, 50257, 1024, true, 'f'},
    Row{"gpt2-medium", "gpt2", 24, 1024, 16, 16, 64, 4096, 50257, 1024, true, 'f'},
    Row{"gpt2-large", "gpt2", 36, 1280, 20, 20, 64, 5120, 50257, 1024, true, 'f'},
    Row{"gpt2-xl", "gpt2", 48, 1600, 25, 25, 64, 6400, 50257, 1024, true, 'f'},
    Row{"distilgpt2", "gpt2", 6, 768, 12, 12, 64, 3072, 50257, 1024, true, 'f'},
    Row{"opt-125m", "opt", 12, 768, 12, 12, 64, 3072, 50272, 2048, true, 'h'},
    Row{"opt-1.3b", "opt", 24, 2048, 32, 32, 64, 8192, 50272, 2048, true, 'h'},
    Row{"opt-2.7b", "opt", 32, 2560, 32, 32, 80, 10240, 50272, 2048, true, 'h'},
    Row{"opt-6.7b", "opt", 32, 4096, 32, 32, 128, 16384, 50272, 2048, true, 'h'},
    Row{"opt-13b", "opt", 40, 5120, 40, 40, 128, 20480, 50272, 2048, true, 'h'},
    Row{"opt-30b", "opt", 48, 7168, 56, 56, 128, 28672, 50272, 2048, true, 'h'},
    Row{"opt-66b", "opt", 64, 9216, 72, 72, 128, 36864, 50272, 2048, true, 'h'},
    Row{"bloom-560m", "bloom", 24, 1024, 16, 16, 64, 4096, 250880, 2048, true, 'h'},
    Row{"bloom-3b", "bloom", 30, 2560, 32, 32, 80, 10240, 250880, 2048, true, 'h'},
    Row{"bloom-7b1", "bloom", 30, 4096, 32, 32, 128, 16384, 250880, 2048, true, 'h'},
    Row{"falcon-7b", "falcon", 32, 4544, 71, 1, 64, 18176, 65024, 2048, true, 'b'},
    Row{"falcon-40b", "falcon", 60, 8192, 128, 8, 64, 32768, 65024, 2048, true, 'b'},
    Row{"starcoder2-3b", "starcoder2", 30, 3072, 24, 2, 128, 12288, 49152, 16384, true, 'b'},
    Row{"starcoder2-7b", "starcoder2", 32, 4608, 36, 4, 128, 18432, 49152, 16384, true, 'b'},
    Row{"starcoder2-15b", "starcoder2", 40, 6144, 48, 4, 128, 24576, 49152, 16384, false, 'b'},
    Row{"olmo-2-7b", "olmo2", 32, 4096, 32, 32, 128, 11008, 100352, 4096, false, 'b'},
    Row{"olmo-2-13b", "olmo2", 40, 5120, 40, 40, 128, 13824, 100352, 4096, false, 'b'},
    Row{"yi-6b", "llama", 32, 4096, 32, 4, 128, 11008, 64000, 4096, false, 'b'},
    Row{"yi-34b", "llama", 60, 7168, 56, 8, 128, 20480, 64000, 4096, false, 'b'},
    Row{"bert-base-uncased", "bert", 12, 768, 12, 12, 64, 3072, 30522, 512, true, 'f'},
    Row{"bert-base-cased", "bert", 12, 768, 12, 12, 64, 3072, 28996, 512, true, 'f'},
    Row{"bert-large-uncased", "bert", 24, 1024, 16, 16, 64, 4096, 30522, 512, true, 'f'},
    Row{"bert-large-cased", "bert", 24, 1024, 16, 16, 64, 4096, 28996, 512, true, 'f'},
    Row{"roberta-base", "roberta", 12, 768, 12, 12, 64, 3072, 50265, 514, true, 'f'},
    Row{"roberta-large", "roberta", 24, 1024, 16, 16, 64, 4096, 50265, 514, true, 'f'},
    Row{"xlm-roberta-base", "xlm-roberta", 12, 768, 12, 12, 64, 3072, 250002, 514, true, 'f'},
    Row{"distilbert-base-uncased", "distilbert", 6, 768, 12, 12, 64, 3072, 30522, 512, true, 'f'},
    Row{"t5-small", "t5", 6, 512, 8, 8, 64, 2048, 32128, 512, true, 'f'},
    Row{"t5-base", "t5", 12, 768, 12, 12, 64, 3072, 32128, 512, true, 'f'},
    Row{"t5-large", "t5", 24, 1024, 16, 16, 64, 4096, 32128, 512, true, 'f'},
    Row{"t5-3b", "t5", 24, 1024, 32, 32, 128, 16384, 32128, 512, true, 'f'},
    Row{"t5-11b", "t5", 24, 1024, 128, 128, 128, 65536, 32128, 512, true, 'f'},
    Row{"vit-base-patch16-224", "vit", 12, 768, 12, 12, 64, 3072, 0, 197, false, 'f'},
    Row{"vit-large-patch16-224", "vit", 24, 1024, 16, 16, 64, 4096, 0, 197, false, 'f'},
    Row{"dinov2-giant", "dinov2", 40, 1536, 24, 24, 64, 4096, 0, 257, false, 'f'},
};
// clang-format on

// Letters and digits of the last part of a path, lower case: "meta-llama/Llama-3.2-1B" -> "llama321b".
std::string key_of(const std::string& name) {
  const size_t slash = name.find_last_of('/');
  std::string key;
  for (const char c : slash == std::string::npos ? name : name.substr(slash + 1))
    if (std::isalnum(static_cast<unsigned char>(c)))
      key += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  if (key.rfind("meta", 0) == 0) key.erase(0, 4);
  return key;
}

// "Llama", "3.2", "1B" of "meta-llama/Llama-3.2-1B".
std::vector<std::string> parts_of(const std::string& name) {
  const size_t slash = name.find_last_of('/');
  std::vector<std::string> parts(1);
  for (const char c : slash == std::string::npos ? name : name.substr(slash + 1)) {
    if (c == '-' || c == '_' || c == ' ' || c == ':') {
      if (!parts.back().empty()) parts.emplace_back();
    } else {
      parts.back() += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    }
  }
  if (parts.back().empty()) parts.pop_back();
  return parts;
}

// A part that makes another shape of it: a size, or the name of one.
bool tells_the_shape(const std::string& part) {
  for (const char* word : {"mini", "small", "medium", "large", "base", "xl", "xxl", "tiny", "nano", "moe", "vl",
                           "vision", "multimodal", "audio", "omni", "next", "lite"})
    if (part == word) return true;
  const bool size = part.size() > 1 && (part.back() == 'b' || part.back() == 'm') &&
                    std::isdigit(static_cast<unsigned char>(part[part.size() - 2]));
  return size && std::isdigit(static_cast<unsigned char>(part[0]));
}

CountOptions options_of(const Row& row) {
  CountOptions options;
  const std::string_view family(row.family);
  if (family == "bert") options.token_types = 2;
  if (family == "roberta" || family == "xlm-roberta") options.token_types = 1;
  options.pooler = options.token_types > 0;
  if (family == "deepseek_v2" || family == "deepseek_v3") {
    options.key_value_rank = 512;
    options.nope_head_dim = 128;
    options.rope_head_dim = 64;
    options.query_rank = family == "deepseek_v3" ? 1536 : 0;
    options.router_bias = family == "deepseek_v3";
  }
  return options;
}

ModelShape shape_of(const Row& row) {
  FamilyTraits traits = family_traits(row.family);
  const std::string_view name(row.name);
  if (name == "falcon-40b") traits.norms_per_layer = 2;
  if (name == "dinov2-giant") traits.gated_mlp = true;
  ModelShape s;
  s.name = row.name;
  s.family = row.family;
  s.layers = row.layers;
  s.hidden = row.hidden;
  s.heads = row.heads;
  s.kv_heads = row.kv_heads;
  s.head_dim = row.head_dim;
  s.intermediate = row.intermediate;
  s.vocab = row.vocab;
  s.max_positions = row.max_positions;
  s.tied = row.tied;
  s.stored_dtype = row.dtype == 'b' ? "bfloat16" : row.dtype == 'h' ? "float16" : "float32";
  s.experts = row.experts;
  s.experts_per_token = row.per_token;
  s.moe_intermediate = row.moe_intermediate;
  s.shared_intermediate = row.shared;
  s.dense_layers = row.dense;
  s.gated_mlp = traits.gated_mlp;
  s.rms_norm = traits.rms_norm;
  s.norms_per_layer = traits.norms_per_layer;
  s.query_key_norm = traits.query_key_norm != QueryKeyNorm::none;
  s.parallel_residual = traits.parallel_residual;
  s.encoder_only = traits.encoder_only;
  s.encoder_decoder = traits.encoder_decoder;
  s.encoder_layers = traits.encoder_decoder ? row.layers : 0;
  s.activation = traits.activation;
  s.attention_dropout = s.hidden_dropout = traits.dropout;
  if (row.vocab == 0) s.labels = 1000;  // image classifiers
  const CountOptions options = options_of(row);
  if (options.key_value_rank > 0) {
    s.value_head_dim = 128;
    s.kv_latent = options.key_value_rank + options.rope_head_dim;
  }
  count_parameters(s, traits, options);
  return s;
}

}  // namespace

// A variant of a model keeps its name in front ("-Instruct-2507", "-AWQ", "-reasoning-plus"): parts are dropped from
// the end until the table knows the rest.
std::optional<ModelShape> find_in_table(const std::string& name) {
  std::vector<std::string> parts = parts_of(name);
  bool dropped_base = false;
  while (!parts.empty()) {
    std::string whole, plain;  // plain: "Mistral-7B-Instruct-v0.3" has the shape of "Mistral-7B-v0.3"
    for (const std::string& part : parts) {
      whole += part;
      if (part != "instruct" && part != "chat" && part != "it" && part != "hf") plain += part;
    }
    for (const std::string& key : {key_of(whole), key_of(plain)})
      for (const Row& row : kRows)
        if (key_of(row.name) == key) return shape_of(row);
    // "Qwen2.5-7B-base" is the model itself, "t5-base" a size: dropped once, behind a size only.
    const bool base =
        parts.back() == "base" && parts.size() > 2 && !dropped_base && tells_the_shape(parts[parts.size() - 2]);
    if (tells_the_shape(parts.back()) && !base) return std::nullopt;
    dropped_base = dropped_base || base;
    parts.pop_back();
  }
  return std::nullopt;
}

}  // namespace headroom::doctor
