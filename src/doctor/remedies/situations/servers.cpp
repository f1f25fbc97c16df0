// vLLM, SGLang and other servers: what they measure, capture and reserve at start.
#include <fmt/format.h>

#include <algorithm>

#include "doctor/remedies/figures.h"
#include "doctor/remedies/model_words.h"
#include "doctor/remedies/posted_numbers.h"
#include "doctor/remedies/situations/conditions.h"
#include "doctor/remedies/situations/situation.h"

namespace headroom::doctor {
namespace {

using enum System;
using enum Sign::In;

bool vllm_on_device(const CaseView& view) { return serving_on_device(view) && view.job().system == System::vllm; }
bool sglang_on_device(const CaseView& view) { return serving_on_device(view) && view.job().system == System::sglang; }
bool captures_graphs(const CaseView& view) {
  return serving_on_device(view) && !view.job().serving.eager.value_or(false);
}

// The weights leave little of the share: there is no room for profiling and graphs, which come on top.
Evidence little_beside_the_weights(const CaseView& view) {
  const std::optional<int64_t> limit = view.balance().limit;
  if (view.message() || !limit || !view.incident().estimate || !view.has_job()) return {};
  if (view.term("weights") * 10 < *limit * 8 || view.term("weights") > *limit) return {};
  return {0.76, "the weights take four fifths of the device or more"};
}

// A server's error at start or while serving, without a KV cache that is too small.
Evidence failed_beside_the_cache(const CaseView& view) {
  const Message* message = view.message();
  if (!message || message->kv_tokens_available || message->kv_bytes_available) return {};
  if (message->phase == "load") return {};
  const bool words = message->format == "words";
  if (message->framework.starts_with("pytorch"))
    return {0.72, words ? "nothing is said of the cache" : "the message is PyTorch's, and not of the cache"};
  return {};
}

// Several devices in the words, and no option that divides the model over them.
Evidence several_devices_and_one_in_use(const CaseView& view) {
  constexpr std::string_view kDivides = "tensor-parallel|tensor_parallel|-tp$|--tp |tp_size|tp=|pipeline-parallel|ray$";
  const int64_t devices = devices_in_words(view.incident().log_text);
  if (devices < 2 || view.says(kDivides) || !view.story().at(ToldStage::evaluation).empty()) return {};
  return {0.8, fmt::format("{} devices in the log, and no option that divides the model", devices)};
}

Evidence scores_of_patches(const CaseView& view) {
  constexpr std::string_view kSees =
      "limit-mm-per-prompt|limit_mm_per_prompt|-vl-|-vl$|vision|multimodal|multi-modal|llava|internvl|pixtral|siglip";
  const std::string_view sees = view.log_says(kSees);
  if (sees.empty() || !asks_beyond_the_device(view)) return {};
  return {0.94, fmt::format("one request of {}, and `{}` in the log", figure(*view.figures().requested), sees)};
}

// "Load weight end. ... avail mem=1.34 GB, mem usage=21.5 GB": what is left for everything else.
Evidence little_left_after_loading(const CaseView& view) {
  const std::string& text = view.incident().log_text;
  const size_t end = text.rfind("load weight end");
  if (end == std::string::npos) return {};
  const std::optional<double> left = number_behind(text, "avail mem=", end);
  const std::optional<double> weights = number_behind(text, "mem usage=", end);
  if (!left || !weights || *left > 0.15 * (*left + *weights)) return {};
  return {0.93, fmt::format("{:.1f} GB are left beside {:.1f} GB of weights", *left, *weights)};
}

// vLLM without a stated length.
constexpr double kLongContext = 16384;  // tokens

// The length that the engine prints as the one it plans for, whoever set it; else the longest that the log has.
std::optional<double> planned_length(const CaseView& view) {
  const std::string& text = view.incident().log_text;
  const size_t engine = text.rfind("initializing a");
  if (engine != std::string::npos)
    if (const std::optional<double> printed = number_behind(text, "max_seq_len=", engine)) return printed;
  std::optional<double> longest;
  for (const double each : posted_numbers(text, "max_seq_len")) longest = std::max(longest.value_or(each), each);
  return longest;
}

bool whole_context(const CaseView& view) {
  const Message* message = view.message();
  const std::optional<double> planned = planned_length(view);
  if (planned && *planned < kLongContext) return false;
  if (message && (message->kv_tokens_available || message->kv_bytes_available)) return false;  // the message says so
  return vllm_on_device(view) && !view.job().serving.max_model_len &&
         !posted_value(view.incident().log_text, "max_model_len") &&
         view.log_says("--max-model-len|--max_model_len|max_model_len=").empty();
}

// "max_seq_len=131072" in the engine's first line, or a model whose name has its context length.
Evidence long_context_in_log(const CaseView& view) {
  if (const std::optional<double> planned = planned_length(view); planned && *planned >= kLongContext)
    return {0.84, fmt::format("a context of {:.0f} tokens in the log", *planned)};
  for (const char* words : {"max seq len (", "max seq len is "}) {
    const std::optional<double> length = number_behind(view.incident().log_text, words, 0);
    if (length && *length >= kLongContext) return {0.84, fmt::format("a context of {:.0f} tokens in the log", *length)};
  }
  const std::string_view named = view.log_says("128k|-1m|256k|longcontext|long-context|max context");
  if (!named.empty()) return {0.78, fmt::format("`{}` in the log", named)};
  // Families whose models take 32k tokens and more.
  const std::string_view family = view.log_says(
      "qwen2|qwen3|qwen-2|llama-3.1|llama-3.2|llama-3.3|llama3.1|llama3.2|llama3.3|mistral|mixtral|deepseek|glm-4|"
      "internlm2|phi-3|gemma-3|yi-1.5|qwen1.5|llama-4|llama4|glm-4.5|glm4|gpt-oss|kimi|minimax|phi-4|granite-3|"
      "internlm3|command-r|ernie-4|seed-oss|nemotron");
  if (family.empty() || view.message() == nullptr) return {};
  return {0.725, fmt::format("`{}` in the log: 32k tokens or more by itself", family)};
}

// "Loading model weights took 20.10 GB" on a device of 23.64 GiB.
Evidence weights_take_the_device(const CaseView& view) {
  const std::string& text = view.incident().log_text;
  const std::optional<double> weights = number_behind(text, "loading model weights took ", 0);
  const std::optional<int64_t>& capacity = view.figures().capacity;
  if (!weights || !capacity || *weights * 0x1p30 < 0.8 * static_cast<double>(*capacity)) return {};
  return {0.8, fmt::format("{:.1f} GB of weights on {}", *weights, figure(*capacity))};
}

Evidence little_left_for_the_pool(const CaseView& view) {
  const Evidence evidence = little_left_after_loading(view);
  return evidence.weight > 0 ? evidence : weights_take_the_device(view);
}

// The length that the command asks for, where one request of it takes gigabytes of the cache.
constexpr int64_t kAskedContext = 32768;
Evidence long_context_by_option(const CaseView& view) {
  const Message* message = view.message();
  if (message && (message->kv_tokens_available || message->kv_bytes_available)) return {};
  constexpr std::string_view kNames = "max_model_len|max_seq_len|context_length|max_total_tokens|session_len";
  std::optional<int64_t> asked = view.job().serving.max_model_len;
  if (!asked) asked = posted_value(view.incident().log_text, kNames);
  if (!asked) asked = posted_value(view.incident().setup_text, kNames);
  if (!message || !asked || *asked < kAskedContext) return {};
  return {0.84, fmt::format("a context of {} tokens is asked for", *asked)};
}

// The weights exceed the device, by the estimate.
Evidence weights_beyond_the_device(const CaseView& view) {
  const std::optional<int64_t> limit = view.balance().limit;
  if (!view.message() || !limit || view.term("weights") <= *limit) return {};
  return {0.88, fmt::format("{} of weights on {}", figure(view.term("weights")), figure(*limit))};
}

// SGLang's options in a file that doctor does not read: recipes of launchers.
bool server_of_an_unread_file(const CaseView& view) {
  return on_device(view) && unknown_program(view) && view.log_says("increase --mem-fraction-static").empty();
}

bool of_lmdeploy(const CaseView& view) { return view.pool() == Pool::device && !view.training(); }
bool of_lmdeploy_on_one(const CaseView& view) {
  return of_lmdeploy(view) && view.says("lmdeploy") && posted_shards(view.incident().log_text) <= 1 &&
         posted_shards(view.incident().setup_text) <= 1;
}
Evidence more_than_one_device(const CaseView& view) {
  const int64_t devices = devices_for_the_weights(view).value_or(1);
  return devices < 2 ? Evidence{} : Evidence{0.9, fmt::format("weights for {} devices", devices)};
}
bool paged_server(const CaseView& view) { return serving_on_device(view) && view.job().system != System::llama_server; }

constexpr Situation kSituations[] = {
    {"share_of_an_unread_file",
     "SGLang reserves its share for weights and KV cache: graphs, kernels' workspaces and activations come on top",
     server_of_an_unread_file,
     {{either, 0.9, "mem-fraction-static|mem_fraction_static"}},
     {{"gpu-memory-utilization", "--mem-fraction-static 0.05 to 0.1 lower"},
      {"max-sequences", "--cuda-graph-max-bs 16 --max-running-requests 32"},
      {"eager", "--disable-cuda-graph"}}},
    {"multimodal_profiling",
     "at its start the server runs the vision encoder for as many sequences as it may ever serve at once",
     serving_on_device,
     {{log, 0.93,
       "starting profile run for multi-modal models|enc_dec_model_runner|profile_run_multimodal|"
       "_profile_multimodal|mm_budget|dummy_data_for_profiling|encoder_cache|encoder cache will be initialized|"
       "multi-modal items|maximum feature size"},
      {log, 0.85, "minicpm-v|mllama|llama-3.2-11b-vision|llama-3.2-90b-vision|-vl-|llava|internvl|pixtral|multimodal"},
      {setup, 0.85, "vision-instruct|-vl-|llava|internvl|pixtral|minicpm-v|limit-mm-per-prompt|gemma-3-"}},
     {{"max-sequences", "--max-num-seqs 16 --enforce-eager", {}, vllm},
      {"eager", "--enforce-eager", {}, vllm},
      {"fewer-images", {}, {}, vllm},
      {"max-sequences"},
      {"gpu-memory-utilization"},
      {"max-model-len"}}},
    {"scores_of_a_vision_encoder",
     "one request is beyond the device: the vision encoder's attention makes the scores of all its patches at once, as "
     "it does where no kernel for it is installed",
     serving_on_device,
     {},
     {{"flash-attention", "pip install flash-attn (or xformers): attention without a matrix of scores"},
      {"fewer-images",
       "fewer or smaller images: --limit-mm-per-prompt '{\"image\": 4}', max_pixels in --mm-processor-kwargs"},
      {"max-sequences"}},
     scores_of_patches},
    {"video_profiling",
     "at its start the server profiles one video of the largest size that the model takes, whatever will be asked",
     vllm_on_device,
     {{log, 0.95, "video items of the maximum feature size|profiled with 1 video|video items"}},
     {{"fewer-images",
       "--limit-mm-per-prompt '{\"image\": 2, \"video\": 0}' where no videos come; for videos fewer frames and pixels "
       "(--mm-processor-kwargs)"},
      {"max-model-len"},
      {"batched-tokens"},
      {"max-sequences"}}},
    {"pool_of_lmdeploy",
     "LMDeploy gives 0.8 of the free memory to its cache: prefill and the vision encoder need the rest",
     of_lmdeploy,
     {{either, 0.83, "lmdeploy"}},
     {{"gpu-memory-utilization", "--cache-max-entry-count 0.4 (cache_max_entry_count=0.4 in Python)"},
      {"max-model-len", "--session-len 8192, --max-prefill-token-num 4096"},
      {"kv-dtype", "--quant-policy 8: the cache in 8 bits"},
      {"quantized-model", "an AWQ version of the model: --model-format awq"}}},
    {"weights_of_lmdeploy",
     "the weights alone are larger than one device: a smaller cache changes nothing",
     of_lmdeploy_on_one,
     {},
     {{"tensor-parallel", "--tp 2 (tp=2 in Python), or as many as hold the weights"},
      {"quantized-model", "an AWQ version of the model: --model-format awq"},
      {"smaller-model"}},
     more_than_one_device},
    {"graph_capture",
     "CUDA graphs are captured after the KV pool took its share: their own pools no longer fit",
     captures_graphs,
     {{log, 0.92,
       "capture cuda graph|capture target|cuda graph capture|capturing the model for cuda graphs|"
       "capturing cuda graph|cuda_graph_runner|graph_capture|capture_model|capturing batches"}},
     {{"eager"}, {"gpu-memory-utilization"}, {"max-sequences"}},
     little_beside_the_weights},
    {"prefill_of_long_prompts",
     "a prefill step of long prompts wants more room than the pool left",
     sglang_on_device,
     {{log, 0.82, "forward_extend|prefill batch|chunked_prefill_size|prefill out of memory"}},
     {{"batched-tokens"}, {"gpu-memory-utilization"}, {"eager"}}},
    {"pool_leaves_no_room",
     "the server's pool takes its share first; activations, graphs and the sampler need the rest",
     paged_server,
     {},
     {{"gpu-memory-utilization"}, {"eager"}, {"max-sequences"}, {"max-model-len"}},
     failed_beside_the_cache},
    {"no_room_for_the_cache",
     "weights and the profiled peak take the whole share: nothing is left for the KV cache",
     vllm_on_device,
     {{log, 0.88, "no available memory for the cache blocks"}},
     {{"gpu-memory-utilization"},
      {"max-sequences"},
      {"batched-tokens"},
      {"max-model-len"},
      {"quantized-model"},
      {"tensor-parallel"}}},
    {"told_cache_too_small",
     "the KV cache does not hold one request of full length: a shorter length, or a larger share",
     vllm_on_device,
     {{log, 0.89,
       "kvキャッシュが足り|kvキャッシュ不足|kv缓存不足|kv缓存不够|kv cache不足|kv cache不够|kv cache is too small|"
       "not enough kv cache|kv cache is not enough|kv cache space"}},
     {{"max-model-len"}, {"gpu-memory-utilization", "--gpu-memory-utilization 0.95: more than now"}, {"kv-dtype"}}},
    {"context_of_the_model",
     "without --max-model-len the server plans for the model's own longest context: profile run and KV cache are sized "
     "by it",
     whole_context,
     {},
     {{"max-model-len"}, {"gpu-memory-utilization"}, {"eager"}},
     long_context_in_log},
    {"long_context_by_option",
     "the context that was asked for: its longest request is profiled at the start, and the cache must hold one",
     paged_server,
     {},
     {{"max-model-len"}, {"batched-tokens"}, {"max-sequences"}, {"kv-dtype"}},
     long_context_by_option},
    {"quantised_by_another_option",
     "vLLM quantises nothing on load_in_4bit or load_in_8bit: the weights come in 16 bits",
     vllm_on_device,
     {{either, 0.9, "load_in_4bit|load_in_8bit|load-in-4bit|load-in-8bit"}},
     {{"quantized-model", "weights that are published in 4 bits (AWQ, GPTQ), or --quantization bitsandbytes"},
      {"tensor-parallel"},
      {"smaller-model", "a smaller model: 2 GB per billion parameters in 16 bits, 0.6 in 4"}}},
    {"weights_leave_no_pool",
     "the weights leave next to nothing for the pool: a larger share does not make room",
     paged_server,
     {{log, 0.9, "leave no gpu memory|leaves no gpu memory|leave no memory for"}},
     {{"tensor-parallel"}, {"quantized-model"}, {"gpu-memory-utilization"}},
     little_left_for_the_pool},
    {"one_of_several_devices",
     "the post speaks of several devices, and nothing in it divides the model: it lies on one of them whole",
     vllm_on_device,
     {},
     {{"tensor-parallel"}, {"gpu-memory-utilization"}, {"max-model-len"}},
     several_devices_and_one_in_use},
    {"weights_do_not_fit",
     "the weights themselves find no room: context, requests and the cache do not matter yet",
     paged_server,
     {{log, 0.85, "in load_model|in load_weights|model_loader|weight_loader|in create_weights"}},
     {{"tensor-parallel"}, {"quantized-model"}, {"serve-offload"}},
     weights_beyond_the_device},
    {"sampler_warm_up",
     "the sampler's warm-up is sized for as many requests as may come at once",
     vllm_on_device,
     {{log, 0.9, "warming up sampler|_dummy_sampler_run"}},
     {{"max-sequences"}, {"gpu-memory-utilization"}}},
};

}  // namespace

std::span<const Situation> server_situations() { return kSituations; }

}  // namespace headroom::doctor
