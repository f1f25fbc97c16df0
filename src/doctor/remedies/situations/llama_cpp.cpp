// llama.cpp and programs around it: the context decides, and by default it is the model's training context.
#include <fmt/format.h>

#include <cstdlib>

#include "doctor/remedies/situations/conditions.h"
#include "doctor/remedies/situations/situation.h"

namespace headroom::doctor {
namespace {

using enum Sign::In;

constexpr int64_t kLongContext = 16384;

bool with_llama_cpp(const CaseView& view) { return view.job().system == System::llama_server; }

// "n_ctx = 1048576", "n_ctx_per_seq = 131072"
std::optional<int64_t> context_in_log(const CaseView& view) {
  const std::string& text = view.incident().log_text;
  size_t at = text.rfind("n_ctx ");
  if (at == std::string::npos) at = text.rfind("n_ctx_per_seq");
  if (at == std::string::npos) return std::nullopt;
  at = text.find_first_of("0123456789", at);
  if (at == std::string::npos) return std::nullopt;
  return std::strtoll(text.c_str() + at, nullptr, 10);
}

Evidence long_context(const CaseView& view) {
  if (view.says("num_ctx")) return {};  // stated, by Ollama's name
  if (const std::optional<int64_t> context = context_in_log(view); context && *context >= kLongContext)
    return {0.92, fmt::format("n_ctx = {} in the log", *context)};
  if (view.has_job() && !view.job().serving.max_model_len && view.shape() && view.shape()->max_positions > kLongContext)
    return {0.85, fmt::format("no --ctx-size, and the model was trained on {} tokens", view.shape()->max_positions)};
  const std::string_view program = view.log_says("llama-cli|llama-server|llama_model_load");
  // The package's own default is 512 tokens.
  if (!program.empty() && llama_cpp_in_python(view).empty() && view.log_says(" -c |--ctx-size|n_ctx=|ctx_size").empty())
    return {0.76, fmt::format("`{}` in the log, and no --ctx-size", program)};
  return {};
}

bool with_llama_cpp_in_python(const CaseView& view) {
  return with_llama_cpp(view) && view.pool() == Pool::device && !llama_cpp_in_python(view).empty();
}
bool with_ollama(const CaseView& view) {
  constexpr std::string_view kMakesItsFile =
      "save_pretrained_gguf|push_to_hub_gguf|gguf for ollama|gguf to ollama|export to ollama|exporting to "
      "ollama|convert "
      "it for ollama";
  if (!view.log_says(kMakesItsFile).empty()) return false;
  return !view.log_says("ollama|llama-server process|llama runner").empty() ||
         !view.setup_says("ollama|parameter num_ctx|parameter num_gpu").empty();
}

constexpr Situation kSituations[] = {
    {"context_of_ollama",
     "the context that was asked for wants a cache that finds no room; it is made for every parallel request",
     with_ollama,
     {{either, 0.86, "parameter num_ctx|parameter num_gpu"},
      {setup, 0.8, "ollama_context_length=|num_ctx|ollama_num_parallel="},
      {log, 0.78, "ollama run|ollama serve|ollama跑|ollama 跑|ollama运行|ollama部署|ollama启动|ollamaで"},
      {log, 0.77, "ollama"},
      {log, 0.72, "llama runner process|llama-server process|requires more system memory"}},
     {{"max-model-len", "PARAMETER num_ctx 4096 (Modelfile; /set parameter num_ctx 4096; OLLAMA_CONTEXT_LENGTH=4096)"},
      {"gpu-layers", "PARAMETER num_gpu <half of the layers>; without it Ollama counts them itself"},
      {"kv-dtype", "OLLAMA_FLASH_ATTENTION=1 OLLAMA_KV_CACHE_TYPE=q8_0", {}, System::unknown, "ollama_kv_cache_type=q"},
      {"quantized-model", "a smaller tag of the model: fewer parameters, or q4_K_M"}}},
    {"default_context",
     "without a context of your own the cache is made for the model's whole training context",
     with_llama_cpp,
     {{log, 0.85, "llama_kv_cache_init: failed|kv_cache_init() failed|failed to allocate buffer for kv cache"}},
     {{"max-model-len", "-c 4096 (--ctx-size; n_ctx= in Python): what is needed, instead of the model's maximum"},
      {"kv-dtype"},
      {"gpu-layers"}},
     long_context},
    {"layers_by_the_package",
     "the package puts as many layers on the device as n_gpu_layers says, and -1 means all: weights and cache of them "
     "must fit",
     with_llama_cpp_in_python,
     {{log, 0.83, "cudamalloc failed|llama_model_load|ggml_init_cublas|out of memory"}},
     {{"gpu-layers", "n_gpu_layers=<half of the layers>, or fewer (privateGPT: in llm_component.py or settings.yaml)"},
      {"quantized-model", "a smaller file of the same model (Q3_K_M, Q2_K), or a smaller model"},
      {"max-model-len", "a smaller n_ctx= (context_window): the cache grows with it"}}},
    {"scratch_for_the_prompt",
     "the buffer for reading the prompt grows with the batch of tokens read at once",
     with_llama_cpp,
     {{log, 0.85, "not enough space in the scratch|not enough space in the context's memory pool|n_batch"}},
     {{"batched-tokens", "-b 128 (n_batch=128 in Python): fewer prompt tokens at once"}, {"max-model-len"}}},
    {"layers_on_the_device",
     "the layers that were asked for do not fit the device",
     with_llama_cpp,
     {{log, 0.78, "alloc_tensor_range|error loading model|failed to load model|unable to allocate cuda"}},
     {{"gpu-layers"}, {"quantized-model"}, {"max-model-len"}}},
};

}  // namespace

std::span<const Situation> llama_cpp_situations() { return kSituations; }

}  // namespace headroom::doctor
