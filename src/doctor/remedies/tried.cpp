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
     "max_mel_frames|max_mel_len|segment_size|segment size|segment_length|segment "
     "length|max_length|max_seq_len|max_seq_length|max_len|seq_len|seq_length|cutoff_len|max length|sequence "
     "length|shorter "
     "text|文本长度|序列长度|系列長"},
    {"input-size",
     "segment_size|segment size|segment_length|segment length|smaller image|smaller input|image size|input "
     "size|max_pixels|min_pixels|max pixels|input_size|img_size|imgsz|resolution|crop "
     "size|crop_size|resize|downscal|down-scal|分辨率|图片尺寸|图像尺寸|图片大小|输入尺寸|解像度|画像サイズ"},
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
    {"offload-optimizer",
     "offload_optimizer|zero_offload|cpu offload|with offload of|with offload,|with offloading|offload on"},
    {"offload-parameters",
     "offload_param|zero3_offload|z3_offload|cpu offload|cpu_offload|with offload of|with offload,|with offloading|"
     "offload on"},
    {"shard", "zero3|zero-3|zero 3|stage 3|stage3|fsdp"},
    {"lora", "lora"},
    {"qlora", "qlora|load_in_4bit|quantization_bit 4|quantization_bit: 4"},
    {"quantized-model", "load_in_4bit|load_in_8bit|int4|int8|4bit|8bit|4-bit|8-bit|awq$|gptq|gguf|量化"},
    {"optimizer-8bit", "8bit adam|8-bit adam|adamw8bit|adamw_8bit|adamw_bnb_8bit|paged_adamw"},
    {"flash-attention", "flash attention|flash-attention|flash_attn|flash_attention|xformers|sdpa"},
    {"detach-history", ".item()|detach()|.detach"},
    {"length-buckets", "group_by_length"},
    {"eval-batch", "eval_batch_size|eval batch|val_batch_size"},
    {"eval-accumulation", "eval_accumulation_steps|prediction_loss_only"},
    {"map-location", "map_location"},
    {"grow-on-demand", "allow_growth|allow growth|memory growth|memory_growth|xla_python_client_preallocate"},
    {"serve-offload", "device_map|cpu_offload_gb|cpu-offload-gb|offload_folder"},
    {"tensor-parallel", "tensor_parallel|tensor-parallel|tensor parallel"},
    {"max-sequences", "max_num_seqs|max-num-seqs|num_parallel"},
    {"batched-tokens", "max_num_batched_tokens|max-num-batched-tokens|chunked_prefill|chunked-prefill"},
    {"kv-dtype", "kv_cache_dtype|kv-cache-dtype|kv_cache_type"},
    {"gpu-layers", "n_gpu_layers|n-gpu-layers|-ngl|num_gpu|gpu layers"},
    {"shared-memory", "shm-size|shm_size|ipc=host|ipc host"},
    {"host-memory", "more ram|memory limit|limits.memory|more memory to|--mem=|mem-per-cpu|加内存|增加内存|内存加到"},
    {"pageable-memory", "pin_memory"},
    {"lean-load", "low_cpu_mem_usage|streaming=true|streaming: true|mmap_mode"},
    {"on-cpu", "on the cpu|on cpu|device=cpu|device='cpu'"},
    {"larger-gpu", "larger gpu|bigger gpu|larger card|更大的显卡|换了显卡"},
};
// Somebody did it.
constexpr std::string_view kAttempted =
    "tried|i try|we try|attempted|already|i reduced|i've reduced|i decreased|i've decreased|i lowered|i've lowered|"
    "i changed|i've changed|i have changed|i added|i've added|i enabled|i've enabled|even with|even if|even after|even "
    "when|even "
    "though|even at|though i|although i|despite|试了|试过|尝试了|尝试过|已经|即使|就算|哪怕|改小了|调小了|降低了|"
    "减小了|缩小了|都试|加了|开了|試し|にしても|下げても|しましたが";
// A question, or a proposal.
constexpr std::string_view kAsked =
    "how can|how do|how to|how should|can i|can we|could i|could you|should i|shall i|is it possible|is there|any way|"
    "anyone|who tried|what if|do i need|怎么|如何|吗|是否|能不能|请问|可以用|ですか|でしょうか|?|？";
constexpr std::string_view kWentWellThen =
    "works|worked|runs fine|trains fine|is fine|was fine|went fine|ok$|solved|no longer|no "
    "problem|successfully|正常|没问题|没有问题|解决了|能跑|可以跑|動いた|"
    "動きました|問題な";
constexpr std::string_view kInVain =
    "still|no luck|to no avail|without success|nothing changed|nothing changes|n't change anything|also fail|fails too|"
    "also get|as well$|keeps failing|照样|也是报错|也报错|没有变化|没变化|没效果|没有作用|没作用|不行|没法|"
    "変化な|同じエラー|だめ|ダメ|not help|n't help|no effect|any effect|a bit effect|no difference|not work|n't "
    "work|in vain|not solve|n't solve|not fix|n't fix|same error|"
    "same problem|same issue|even with|even when|even if|even though|even "
    "after|无法解决|解决不了|没有解决|未解决|没用|无用|不起作用|没有效果|无效|依旧|"
    "依然|仍然|仍会|还是|也不行|都不行|不管用|改变不|しても|変わら|効果がな|効果があり|解決しない|解決しま|解消され|"
    "ものの";

constexpr std::string_view kNotToBlame =
    "not the problem|not the issue|not the cause|not the matter|not the reason|n't the problem|n't the issue|n't the "
    "cause|does not matter|doesn't matter|regardless of|no matter|irrespective|not "
    "related|unrelated|无关|没关系|没有关系|"
    "关系不大|无论|不管|関係な|関係あり|問題ではな|せいではな";

}  // namespace

bool says_attempted(std::string_view sentence) {
  constexpr std::string_view kOfMessages = "already allocated|tried to allocate|despite having|despite the";
  if (any_word(without_words(sentence, kOfMessages), kAttempted).empty()) return false;
  if (!any_word(sentence, kAsked).empty()) return false;
  constexpr std::string_view kNotWell = "not works|n't works|not worked|not solved|n't solved|is not fine";
  return any_word(without_words(sentence, kNotWell), kWentWellThen).empty();
}

// Something that is on or off, and that the sentence says is on: where memory ran out it did not help.
bool says_in_use(std::string_view sentence, std::string_view technique) {
  constexpr std::string_view kOnOrOff = "no-grad|empty-cache|checkpointing|mixed-precision";
  constexpr std::string_view kUses =
      "i use$|i used$|i am using|i'm using|we use$|we used$|we are using|i thought that using|i thought using|i "
      "wrapped|"
      "使用了|用了|を使って";
  if (any_word(kOnOrOff, technique).empty() || any_word(sentence, kUses).empty()) return false;
  return any_word(sentence, kAsked).empty() && any_word(sentence, kWentWellThen).empty();
}

bool says_in_vain(std::string_view sentence) { return !any_word(sentence, kInVain).empty(); }

// Another failure came of it: "with ZeRO-3 i get an error about shapes".
bool says_failed_otherwise(std::string_view sentence, std::string_view words) {
  constexpr std::string_view kErrors =
      "an error|the error|errors|raises|exception|crashes with|fails with|does not support|not "
      "supported|报错|出错|异常|"
      "不支持|エラー";
  constexpr std::string_view kUses =
      "with|using|use$|used|when|under|enable|使用|用|开启|配置|改成|改为|使うと|にすると";
  bool found = false;
  each_clause(sentence, [&](std::string_view clause) {
    found = !any_word(clause, words).empty() && !any_word(clause, kErrors).empty() &&
            !any_word(clause, kUses).empty() && told_out_of_memory(clause).empty();
    return found;
  });
  return found;
}

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
  for (const std::string_view word :
       {"still",           "but still",    "it still",     "and it still",  "and still",
        "but it still",    "but i still",  "but we still", "i still",       "same error",
        "same problem",    "same issue",   "the same",     "no luck",       "it did not help",
        "it didn't help",  "did not help", "didn't help",  "does not help", "doesn't help",
        "without success", "依旧",         "依然",         "还是",          "仍",
        "但还是",          "但是还是",     "也不行",       "都不行",        "没用",
        "没有用",          "それでも",     "やはり",       "変わら"})
    if (sentence.starts_with(word)) return true;
  return false;
}

bool tried_in_vain(std::string_view log, std::string_view technique) {
  log = beginning(log);
  for (const Tried& tried : kTried) {
    if (tried.technique != technique || any_word(log, tried.words).empty()) continue;
    return each_with_answer(log, [&](std::string_view sentence, bool vain_behind) {
      if (sentence.find("file \"") != std::string_view::npos || any_word(sentence, tried.words).empty()) return false;
      return vain_behind || says_in_vain(sentence) || says_in_use(sentence, technique) || says_attempted(sentence) ||
             says_not_the_matter(sentence, tried.words) || says_failed_otherwise(sentence, tried.words);
    });
  }
  return false;
}

}  // namespace headroom::doctor
