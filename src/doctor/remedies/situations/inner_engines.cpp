// vLLM inside another program: evaluation harnesses, chats and trainers start it as a library and pass on its settings.
#include <fmt/format.h>

#include "doctor/remedies/situations/conditions.h"
#include "doctor/remedies/situations/situation.h"

namespace headroom::doctor {
namespace {

using enum System;
using enum Sign::In;

bool cache_too_small(const CaseView& view) {
  const Message* message = view.message();
  return message && (message->kv_tokens_available || message->kv_bytes_available);
}
// The message is vLLM's, and the job that is shown is another program's.
bool inside(const CaseView& view) {
  return view.pool() == Pool::device && !view.serving() && view.reinforcement_library().empty() &&
         !view.phase("backward") && !view.phase("optimizer_step");
}
bool cache_inside(const CaseView& view) { return inside(view) && view.framework() == "vllm" && cache_too_small(view); }
bool start_inside(const CaseView& view) { return inside(view) && view.framework() == "vllm" && !cache_too_small(view); }
Evidence message_of_vllm(const CaseView&) { return {0.93, "the message is vLLM's"}; }

// A harness or another evaluation that is told to compute by vLLM, by itself or as its server.
bool harness_with_vllm(const CaseView& view) {
  const bool harness = view.says(kHarnesses);
  const bool engine = view.says("vllm");
  return view.pool() == Pool::device && view.framework() != "vllm" && view.reinforcement_library().empty() && harness &&
         engine && !cache_too_small(view);
}
Evidence harness_and_engine(const CaseView& view) {
  const std::string_view logged = view.log_says(kHarnesses);
  return {0.96, fmt::format("`{}` and vLLM in the {}", logged.empty() ? view.setup_says(kHarnesses) : logged,
                            logged.empty() ? "configuration" : "post")};
}

constexpr std::string_view kLowerShare =
    "a smaller share for vLLM: gpu_memory_utilization=0.7 or less in --model_args (or the program's option for it)";

constexpr Situation kSituations[] = {
    {"harness_over_vllm",
     "vLLM takes its share for weights and cache first; CUDA graphs, the sampler and log probabilities of whole rows "
     "come on top of it",
     harness_with_vllm,
     {},
     {{"gpu-memory-utilization", kLowerShare},
      {"eager", "enforce_eager=True in --model_args: no CUDA graphs are kept beside the pool"},
      {"max-sequences", "fewer rows at once: max_num_seqs=16 in --model_args, --batch_size a number instead of auto"},
      {"max-model-len", "max_model_len=4096 in --model_args: what the profile run and the cache are sized by"},
      {"half-inference",
       "dtype=bfloat16 in --model_args",
       {},
       System::unknown,
       "dtype=bfloat16|dtype=float16|dtype=auto|dtype=\"bfloat16|dtype=\"float16"}},
     harness_and_engine},
    {"cache_of_an_inner_vllm",
     "the KV cache that vLLM has left does not hold one request of full length: weights take most of its share",
     cache_inside,
     {},
     {{"gpu-memory-utilization",
       "a larger share: vllm_gpu_util: 0.95 (releases without it: gpu_memory_utilization where the engine is made)",
       {},
       llamafactory},
      {"gpu-memory-utilization",
       "a larger share: gpu_memory_utilization=0.95 where the engine is made (LLM(...), --model_args), or the "
       "program's option for it"},
      {"max-model-len", "vllm_maxlen: <half>: the longest request", {}, llamafactory},
      {"max-model-len", "a smaller max_model_len where the engine is made, or the program's option for it"},
      {"tensor-parallel", "more devices: tensor_parallel_size, in LLaMA-Factory all that CUDA_VISIBLE_DEVICES names"},
      {"quantized-model", "a version in 4 or 8 bits: AWQ, GPTQ, FP8"}},
     message_of_vllm},
    {"start_of_an_inner_vllm",
     "vLLM wants its share of the whole device when it starts, whatever else the program holds there",
     start_inside,
     {},
     {{"gpu-memory-utilization", "vllm_gpu_util: 0.7 or less", {}, llamafactory},
      {"gpu-memory-utilization",
       "a smaller share: gpu_memory_utilization=0.7 or less where the engine is made, or the program's option for it"},
      {"eager", "enforce_eager=True (LLaMA-Factory: vllm_enforce_eager: true): no CUDA graphs beside the pool"},
      {"max-model-len", "a smaller max_model_len where the engine is made (LLaMA-Factory: vllm_maxlen)"},
      {"end-other-processes", "nvidia-smi: another program, or an earlier run, may hold the device"}},
     message_of_vllm},
};

}  // namespace

std::span<const Situation> inner_engine_situations() { return kSituations; }

}  // namespace headroom::doctor
