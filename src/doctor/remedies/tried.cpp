#include "doctor/remedies/tried.h"

#include <algorithm>

namespace headroom::doctor {
namespace {

struct Tried {
  std::string_view technique, words;
};
// The batch size is not listed: log_batch.h reads it together with its number.
constexpr Tried kTried[] = {
    {"expandable-segments", "expandable_segments|alloc_conf|max_split_size|断片化対策"},
    {"max-split-size", "alloc_conf|max_split_size|断片化対策"},
    {"empty-cache", "empty_cache|emptying the cache|gc.collect|清空缓存|清理缓存|清显存"},
    {"checkpointing", "gradient_checkpointing|gradient checkpointing|activation checkpointing|梯度检查点"},
    {"gpu-memory-utilization", "gpu_memory_utilization|gpu-memory-utilization|mem-fraction-static|mem_fraction_static"},
    {"max-model-len", "max_model_len|max-model-len|context length|num_ctx|n_ctx|--ctx-size"},
    {"sequence-length",
     "max_length|max_seq_len|max_seq_length|max_len|seq_len|seq_length|cutoff_len|max length|sequence length|shorter "
     "text|文本长度|序列长度|系列長"},
    {"input-size",
     "smaller image|image size|img_size|imgsz|resolution|crop "
     "size|crop_size|分辨率|图片尺寸|图像尺寸|解像度|画像サイズ"},
    {"low-vram", "lowvram|medvram|novram|cpu_offload|enable_tiling|attention_slicing|low-memory tricks"},
    {"half-inference", "fp16|float16|half()|bf16|bfloat16|half precision|半精度"},
    {"mixed-precision", "fp16|amp$|autocast|mixed precision|混合精度"},
    {"fewer-workers", "num_workers|num_proc|workers$|worker数|进程数|线程数|ワーカー数"},
    {"no-grad", "no_grad|inference_mode"},
    {"end-other-processes", "other process|no other program|killed all|kill all|reboot|restarted|重启"},
    {"more-swap",
     "swap|paging file|page file|pagefile|virtual "
     "memory|虚拟内存|页面文件|分页文件|仮想メモリ|ページファイル|ページング"},
    {"eager", "enforce_eager|enforce-eager"},
    {"offload-optimizer", "offload_optimizer|zero_offload|cpu offload"},
};
constexpr std::string_view kInVain =
    "still|no luck|to no avail|without success|nothing changed|nothing changes|n't change anything|also fail|fails too|"
    "also get|as well$|keeps failing|照样|也是报错|也报错|没有变化|没变化|没效果|没有作用|没作用|不行|没法|"
    "変化な|同じエラー|だめ|ダメ|not help|n't help|no effect|any effect|a bit effect|no difference|not work|n't "
    "work|in vain|same error|"
    "same problem|same issue|even with|even when|even if|even though|even after|没用|无用|不起作用|没有效果|无效|依旧|"
    "依然|仍然|仍会|还是|也不行|都不行|不管用|改变不|しても|変わら|効果がな|効果があり|解決しない|解決しま|解消され|"
    "ものの";

constexpr std::string_view kNotToBlame =
    "not the problem|not the issue|not the cause|not the matter|not the reason|n't the problem|n't the issue|n't the "
    "cause|does not matter|doesn't matter|regardless of|no matter|irrespective|not "
    "related|unrelated|无关|没关系|没有关系|"
    "关系不大|无论|不管|関係な|関係あり|問題ではな|せいではな";

}  // namespace

bool says_in_vain(std::string_view sentence) { return !any_word(sentence, kInVain).empty(); }

bool says_not_the_matter(std::string_view sentence, std::string_view words) {
  bool found = false;
  each_clause(sentence, [&](std::string_view clause) {
    const std::string_view word = any_word(clause, words);
    if (word.empty()) return false;
    // "it is not the batch size that is the problem"
    const bool excluded = !any_word(clause, "is not|isn't|not because|not due|不是|并非").empty() &&
                          !any_word(clause, "problem|issue|reason|cause|matter|问题|原因").empty();
    found = !any_word(clause, kNotToBlame).empty() || (excluded && affirmed_word(clause, words).empty());
    return found;
  });
  return found;
}

bool begins_in_vain(std::string_view sentence) {
  constexpr std::string_view kMarks = " \t\r-*,(";
  sentence.remove_prefix(std::min(sentence.find_first_not_of(kMarks), sentence.size()));
  for (const std::string_view word : {"still",
                                      "but still",
                                      "but it still",
                                      "same error",
                                      "same problem",
                                      "same issue",
                                      "the same",
                                      "no luck",
                                      "it did not help",
                                      "it didn't help",
                                      "did not help",
                                      "didn't help",
                                      "does not help",
                                      "doesn't help",
                                      "without success",
                                      "依旧",
                                      "依然",
                                      "还是",
                                      "仍",
                                      "但还是",
                                      "但是还是",
                                      "也不行",
                                      "都不行",
                                      "没用",
                                      "没有用",
                                      "それでも",
                                      "やはり",
                                      "変わら"})
    if (sentence.starts_with(word)) return true;
  return false;
}

bool tried_in_vain(std::string_view log, std::string_view technique) {
  log = beginning(log);
  for (const Tried& tried : kTried) {
    if (tried.technique != technique || any_word(log, tried.words).empty()) continue;
    return each_with_answer(log, [&](std::string_view sentence, bool vain_behind) {
      if (sentence.find("file \"") != std::string_view::npos || any_word(sentence, tried.words).empty()) return false;
      return vain_behind || says_in_vain(sentence) || says_not_the_matter(sentence, tried.words);
    });
  }
  return false;
}

}  // namespace headroom::doctor
