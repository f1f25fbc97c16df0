#include "doctor/remedies/tried.h"

#include "doctor/remedies/told_stage.h"

namespace headroom::doctor {
namespace {

struct Tried {
  std::string_view technique, words;
};
// The batch is read with its number: see log_batch.h.
constexpr Tried kTried[] = {
    {"expandable-segments", "expandable_segments|alloc_conf|max_split_size|断片化対策"},
    {"max-split-size", "alloc_conf|max_split_size|断片化対策"},
    {"empty-cache", "empty_cache|emptying the cache|gc.collect|清空缓存|清理缓存|清显存"},
    {"checkpointing", "gradient_checkpointing|gradient checkpointing|activation checkpointing|梯度检查点"},
    {"gpu-memory-utilization", "gpu_memory_utilization|gpu-memory-utilization|mem-fraction-static|mem_fraction_static"},
    {"max-model-len", "max_model_len|max-model-len|context length|num_ctx|n_ctx|--ctx-size"},
    {"sequence-length", "max_length|max_seq_len|max_len|cutoff_len|max length|sequence length"},
    {"input-size", "smaller image|image size|resolution|分辨率|图片尺寸|解像度"},
    {"low-vram", "lowvram|medvram|novram|cpu_offload|enable_tiling|attention_slicing|low-memory tricks"},
    {"half-inference", "fp16|float16|half()|bf16|bfloat16|half precision|半精度"},
    {"mixed-precision", "fp16|amp$|autocast|mixed precision|混合精度"},
    {"fewer-workers", "num_workers"},
    {"no-grad", "no_grad|inference_mode"},
    {"end-other-processes", "other process|no other program|killed all|kill all|reboot|restarted|重启"},
    {"more-swap", "swap|paging file|page file|虚拟内存|页面文件"},
    {"eager", "enforce_eager|enforce-eager"},
    {"offload-optimizer", "offload_optimizer|zero_offload|cpu offload"},
};
constexpr std::string_view kInVain =
    "still|not help|n't help|no effect|any effect|a bit effect|no difference|not work|n't work|in vain|same error|"
    "same problem|same issue|even with|even when|even if|even though|even after|没用|无用|不起作用|没有效果|无效|依旧|"
    "依然|仍然|仍会|还是|也不行|都不行|不管用|改变不|しても|変わら|効果がな|効果があり|解決しない|解決しま|解消され|"
    "ものの";

}  // namespace

bool tried_in_vain(std::string_view log, std::string_view technique) {
  constexpr size_t kRead = size_t{32} << 10;  // people's words come first
  log = log.substr(0, kRead);
  for (const Tried& tried : kTried) {
    if (tried.technique != technique || any_word(log, tried.words).empty()) continue;
    bool found = false;
    each_sentence(log, [&](std::string_view sentence) {
      found = sentence.find("file \"") == std::string_view::npos && !any_word(sentence, tried.words).empty() &&
              !any_word(sentence, kInVain).empty();
      return found;
    });
    return found;
  }
  return false;
}

}  // namespace headroom::doctor
