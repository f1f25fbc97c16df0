// Chats and other programs in which a person talks to a language model: what grows with the conversation, and the
// programs' own options.
#include "doctor/remedies/model_words.h"
#include "doctor/remedies/situations/conditions.h"
#include "doctor/remedies/situations/situation.h"

namespace headroom::doctor {
namespace {

using enum Sign::In;

bool device_of_a_chat(const CaseView& view) {
  return on_device(view) && view.reinforcement_library().empty() && !speaks_of_diffusion(view);
}
bool any_device(const CaseView& view) { return view.pool() == Pool::device && !view.has_job(); }
bool host_or_device(const CaseView& view) {
  return (device_of_a_chat(view) && !view.has_job()) || view.pool() == Pool::host;
}
bool spread(const CaseView& view) {
  return device_of_a_chat(view) && !view.serving() && view.story().task != ToldTask::training &&
         view.log_says("deepspeed|fsdp|full tuning|optimizer").empty();
}
bool predicting_texts(const CaseView& view) {
  return device_of_a_chat(view) && !view.training() && view.job().system != System::vllm && speaks_of_texts(view);
}

constexpr std::string_view kTurns =
    "several messages|few messages|some messages|several turns|few turns|some turns|several rounds|few rounds|"
    "several questions|few questions|second question|second message|several prompts|few prompts|second prompt|"
    "several replies|few replies|several responses|few responses|multi-turn|multi turn|long conversation|"
    "conversation gets|chat history|history gets|context gets "
    "longer|多轮|几轮|轮对话|每次对话|第二轮|第二次提问|几次对话|"
    "几次问答|聊几句|聊着|对话历史|历史记录|问几个|提问的问题|提问增多|问题的增多|多次提问|连续提问|不断提问|何度か|"
    "数回|会話を続け|会話が長|会話履歴";
constexpr std::string_view kOneDevice =
    "only the first gpu|only on the first|only one gpu|only uses one|only uses gpu 0|only loaded on|just one gpu|"
    "single gpu is not|on multiple gpus|on two gpus|across gpus|across two gpus|split the model|two gpus|2 gpus|"
    "several gpus|multiple "
    "gpus|多卡推理|多卡加载|多张卡|两张卡|双卡|单卡放不下|单卡装不下|只用了一张|只用一张|只加载到|"
    "只占用一张|複数のgpu|2枚のgpu|1枚のgpu";

Evidence longer_conversation(const CaseView& view) {
  const std::string_view word = view.log_says(kTurns);
  if (word.empty()) return {};
  return {0.87, "`" + std::string(word) + "` in the log"};
}
// No chat: the model is not what has to be spread.
bool shows_images_or_batches(const CaseView& view) {
  return speaks_of_images(view) || !view.log_says("volume|batch size|batch_size|batchsize").empty();
}
Evidence spread_over_devices(const CaseView& view) {
  const std::string_view word = view.log_says(kOneDevice);
  if (!view.log_says("device_map").empty()) return {};
  if (!word.empty()) return {0.84, "`" + std::string(word) + "` in the log"};
  if (!view.story().several_devices) return {};
  if (!speaks_of_texts(view) && shows_images_or_batches(view)) return {};
  return {0.75, "the log speaks of several devices"};
}

Evidence mapped_to_the_first(const CaseView& view) {
  if (view.log_says("device_map").empty()) return {};
  const std::string_view first =
      view.log_says("gpu 0|gpu0|gpu:0|cuda:0|first gpu|first card|第一张卡|第一张显卡|0号卡|卡0|gpu 0番");
  if (first.empty()) return {};
  return {0.9, "`device_map` and `" + std::string(first) + "` in the log"};
}

constexpr Situation kSituations[] = {
    {"longer_conversation",
     "every turn is read again with the whole history: keys and values, and the scores of a prompt, grow with it",
     predicting_texts,
     {},
     {{"input-size",
       "a shorter history: the last turns alone (history=history[-3:]), a smaller max_length (max_new_tokens)"},
      {"quantized-model", "weights in 4 or 8 bits leave room for the conversation: load_in_4bit=True, .quantize(4)"},
      {"empty-cache", "torch.cuda.empty_cache() after each answer"},
      {"no-grad", "with torch.inference_mode(): around model.generate()"}},
     longer_conversation},
    {"one_device_of_several",
     "a model that is moved by .cuda() or .to(\"cuda\") lies on the first GPU whole",
     spread,
     {},
     {{"serve-offload",
       "from_pretrained(..., device_map=\"auto\"): layers over all GPUs, the rest on the host; no .cuda()"},
      {"quantized-model", "a version in 4 or 8 bits (AWQ, GPTQ, GGUF), or from_pretrained(..., load_in_4bit=True)"},
      {"tensor-parallel", "a server that splits the model: vllm serve MODEL --tensor-parallel-size 2"}},
     spread_over_devices},
    {"first_device_takes_most",
     "device_map=\"auto\" fills the first GPU first, where inputs, cache and outputs of every layer go too",
     spread,
     {},
     {{"serve-offload",
       "device_map=\"balanced_low_0\", or max_memory={0: \"<half>GiB\", 1: \"22GiB\"}: less of the weights on the "
       "first"},
      {"quantized-model", "a version in 4 or 8 bits (AWQ, GPTQ, GGUF), or from_pretrained(..., load_in_4bit=True)"},
      {"input-size"}},
     mapped_to_the_first},
    {"chat_by_fastchat",
     "FastChat loads 16-bit weights whole unless it is told otherwise: 14 GB for 7B, 26 GB for 13B",
     host_or_device,
     {{either, 0.86, "fastchat.serve|fastchat/serve|fschat|model_worker|run fastchat|start fastchat"}},
     {{"quantized-model", "--load-8bit", {}, System::unknown, "--load-8bit"},
      {"serve-offload",
       "--cpu-offloading (with --load-8bit), or --device cpu",
       {},
       System::unknown,
       "--cpu-offloading"},
      {"tensor-parallel", "--num-gpus 2 --max-gpu-memory 20GiB", {}, System::unknown, "--num-gpus"},
      {"smaller-model", "a smaller model: 7B instead of 13B"}}},
    {"chat_by_text_generation_webui",
     "the web UI loads the model whole on the GPU: weights by their type, and the cache by the context",
     any_device,
     {{either, 0.86, "text-generation-webui|text_generation_webui|oobabooga|exllama"}},
     {{"quantized-model", "--load-in-4bit (or --load-in-8bit), or a GGUF, GPTQ or EXL2 version of the model"},
      {"serve-offload", "--gpu-memory 10 --cpu-memory 30 (transformers); llama.cpp: fewer n-gpu-layers"},
      {"max-model-len", "a smaller context: --ctx-size 4096 (n_ctx, max_seq_len 4096), cache_8bit or cache_4bit"},
      {"smaller-model", "a smaller model"}}},
    {"chat_by_koboldcpp",
     "layers on the GPU and the context share it",
     any_device,
     {{either, 0.86, "koboldcpp|kobold.cpp|kobold"}},
     {{"gpu-layers", "--gpulayers <fewer>: the rest stays on the CPU"},
      {"max-model-len", "--contextsize 4096"},
      {"kv-dtype", "--quantkv 1 --flashattention, or --lowvram: the cache in 8 bits, or on the host"},
      {"quantized-model", "a smaller file of the model: Q4_K_S, or fewer parameters"}}},
    {"chat_by_lm_studio",
     "the model's file, its context and the system share the memory",
     any_device,
     {{either, 0.86, "lm studio|lmstudio|lm-studio|gpt4all|jan.ai"}},
     {{"gpu-layers", "GPU Offload: fewer layers (the model's settings)"},
      {"max-model-len", "Context Length: 4096 (the model's settings)"},
      {"quantized-model", "a smaller file of the model: Q4_K_M, or fewer parameters"},
      {"kv-dtype", "K and V Cache Quantization Type: Q8_0, with Flash Attention"}}},
};

}  // namespace

std::span<const Situation> chat_situations() { return kSituations; }

}  // namespace headroom::doctor
