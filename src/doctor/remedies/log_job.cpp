#include "doctor/remedies/log_job.h"

#include <array>
#include <utility>

#include "base/find_text.h"
#include "doctor/remedies/case_view.h"
#include "doctor/remedies/log_batch.h"
#include "doctor/remedies/told_stage.h"

namespace headroom::doctor {
namespace {

template <size_t N>
bool any_in(const std::string& log, const std::array<std::string_view, N>& words) {
  for (const std::string_view word : words)
    if (find_text(log, word) != std::string_view::npos) return true;
  return false;
}

constexpr std::array<std::string_view, 10> kThird = {
    "zero stage3", "zero stage 3", "zero_stage 3", "zero-stage 3",     "zero-3",
    "zero 3",      "zero3",        "stage3.py",    "optimizer_stage3", "partition_parameters.py"};
constexpr std::array<std::string_view, 8> kSecond = {"zero stage2", "zero stage 2", "zero_stage 2", "zero-stage 2",
                                                     "zero-2",      "zero 2",       "zero2",        "stage_1_and_2.py"};
// PyTorch's own, named as an option or a class: it divides weights, gradients and states.
constexpr std::array<std::string_view, 5> kFullyShard = {"--fsdp", "fullyshardeddataparallel", "full_shard",
                                                         "enable_fsdp", "fsdp_config"};
// Of Ollama's file, which runs llama.cpp.
constexpr std::array<std::string_view, 2> kModelfile = {"parameter num_ctx", "parameter num_gpu"};

// As beginnings of words: neither "support" nor "endpoint" names a method.
constexpr std::string_view kStrictTraining =
    "train|retrain|finetun|fine-tun|grpo|ppo|dpo|微调|训练|学習|ファインチューニング";
constexpr std::string_view kAdapters = "lora|qlora";

constexpr std::array<std::string_view, 3> kLlamaCpp = {"llama.cpp", "llama-cpp", "llama_cpp"};
constexpr std::array<std::string_view, 7> kServingWords = {"deploy", "部署", "startup", "server",
                                                           "serve",  "启动", "起動"};

struct LogMark {
  std::string_view part;
  System system;
};
// The most specific ones first.
constexpr LogMark kLogMarks[] = {
    {"vllmworkerprocess", System::vllm},
    {"vllm api server", System::vllm},
    {"/vllm/", System::vllm},
    {"llm_engine.py", System::vllm},
    {"vllm serve", System::vllm},
    {"vllm.entrypoints", System::vllm},
    {"loading model weights took", System::vllm},
    {"from vllm import", System::vllm},
    {"sglang", System::sglang},
    {"memory pool end.", System::sglang},
    {"capture cuda graph begin", System::sglang},
    {"text_generation_launcher", System::tgi},
    {"text-generation-launcher", System::tgi},
    {"text-generation-inference", System::tgi},
    {"llama_model_load", System::llama_server},
    {"llama_new_context", System::llama_server},
    {"llama_kv_cache", System::llama_server},
    {"axolotl", System::axolotl},
    {"llamafactory", System::llamafactory},
    {"llama-factory", System::llamafactory},
    {"llama factory", System::llamafactory},
    {"llmtuner", System::llamafactory},
    {"train_bash.py", System::llamafactory},
    {"torchtune", System::torchtune},
    {"tune run ", System::torchtune},
    {"litgpt", System::litgpt},
    {"lit-gpt", System::litgpt},
    {"lit_gpt", System::litgpt},
    {"lit-llama", System::litgpt},
    {"lit_llama", System::litgpt},
    {"// devices", System::litgpt},
    {"unsloth", System::trl},
    {"transformers/trainer", System::hf_trainer},
    {"deepspeed", System::deepspeed},
    {"vllm 0.", System::vllm},
    {"vllm v0.", System::vllm},
};

// By its frames, or else by what the log says: a message alone is taken for a training's.
bool predicts(const Message& message, ToldTask told) {
  if (message.phase == "inference") return true;
  for (const std::string_view of_a_step :
       {"backward", "optimizer_step", "optimizer_init", "training", "checkpoint_save", "eval"})
    if (message.phase == of_a_step) return false;
  return told == ToldTask::prediction;
}

// Configures a part of jobs of several systems.
bool of_several_systems(System system) {
  return own_program(system) || system == System::deepspeed || system == System::accelerate;
}

// The more particular one of the system that the log shows and of the one whose settings it quotes.
System shown_system(System log, System quoted) {
  if (own_program(log)) return own_program(quoted) ? log : quoted;
  if (of_several_systems(quoted) || server_system(log) || builds_on(log, quoted)) return log;
  return quoted;
}

// What is only compared with: sentences that say that another server goes well.
std::string without_what_goes_well(const std::string& log) {
  constexpr std::string_view kWell =
      "works fine|works well|work fine|works with|works on|works in|runs fine|runs well|is fine|no problem|没问题|"
      "没有问题|正常|問題な";
  std::string text = log;
  each_sentence(beginning(log), [&](std::string_view sentence) {
    if (!affirmed_word(sentence, kWell).empty() && told_out_of_memory(sentence).empty())
      text.replace(static_cast<size_t>(sentence.data() - log.data()), sentence.size(), sentence.size(), ' ');
    return false;
  });
  return text;
}

// Settings whose names only LLaMA-Factory has. alpaca-lora's copies have a cutoff_len of their own.
bool names_settings_of_llamafactory(const std::string& log) {
  constexpr std::string_view kSettings =
                                 "cutoff_len|截断长度|finetuning_type|lora_target$|llamaboard|longlora|shift_attn",
                             kOthers = "alpaca-lora|alpaca_lora|micro_batch_size|firefly|fastchat|ms-swift|swift sft";
  return !any_word(log, kSettings).empty() && any_word(log, kOthers).empty();
}

System marked_system(const std::string& log) {
  for (const LogMark& mark : kLogMarks)
    if (find_text(log, mark.part) != std::string_view::npos) return mark.system;
  return names_settings_of_llamafactory(log) ? System::llamafactory : System::unknown;
}

}  // namespace

System system_of_log(const std::string& whole) {
  constexpr std::string_view kServers = "vllm|sglang|lmdeploy|llama.cpp|ollama|tgi$|text-generation-inference";
  const std::string_view first = any_word(whole, kServers);
  const bool compares = !first.empty() && !any_word(without_words(whole, first), kServers).empty();
  const std::string log = compares ? without_what_goes_well(whole) : whole;
  if (const System marked = marked_system(log); marked != System::unknown) return marked;
  // The bare name, where nothing trains: a training may have a server for its rollouts.
  // Adapters are served too.
  if (!any_word(log, kStrictTraining).empty()) return System::unknown;
  if (!any_word(log, kAdapters).empty() && !any_in(log, kServingWords)) return System::unknown;
  if (log.find("vllm") != std::string::npos) return System::vllm;
  const bool quantises = log.find("quantize") != std::string::npos || log.find("convert") != std::string::npos;
  return any_in(log, kLlamaCpp) && !quantises ? System::llama_server : System::unknown;
}

std::string_view reinforcement_of(const std::string& log) {
  if (log.find("actor_rollout_ref") != std::string::npos || find_word(log, "verl$") != std::string::npos ||
      find_word(log, "easyr1") != std::string::npos)
    return "verl";
  return log.find("openrlhf") != std::string::npos ? "openrlhf" : "";
}

bool own_program(System system) { return system == System::unknown || system == System::pytorch_script; }

bool server_system(System system) {
  return system == System::vllm || system == System::sglang || system == System::tgi || system == System::llama_server;
}

Job job_of_log(const Case& incident, const Message* message, std::string_view reinforcement, ToldTask told) {
  Job job;
  if (incident.quoted && reinforcement.empty()) job = *incident.quoted;
  const System quoted = std::exchange(job.system, System::unknown);
  const bool quotes_training = !of_several_systems(quoted) && !server_system(quoted);
  if (!job.batch.micro) job.batch.micro = incident.micro_batch;
  if (!job.batch.micro && batch_of_one(incident.log_text)) job.batch.micro = 1;
  if (!reinforcement.empty()) {
    job.system = System::pytorch_script;
    return job;
  }
  if (!message && any_in(incident.setup_text, kModelfile)) job.system = System::llama_server;
  if (message) job.system = system_of(*message);
  if (own_program(job.system)) {
    const System named = system_of_log(incident.log_text);
    // Without a message only the log of a server is taken for one.
    if (message ? named != System::unknown : server_system(named)) job.system = named;
  }
  job.system = shown_system(job.system, quoted);
  // Its keys are of another file than the batch and the rest.
  if (job.system != quoted && of_several_systems(quoted)) job.keys = {};
  job.task = Task::train;
  if (server_system(job.system)) {
    job.task = Task::serve;
  } else if (!message && told == ToldTask::prediction && !quotes_training) {
    job.task = Task::infer;
  } else if (message) {
    const bool only_predicts = quotes_training ? message->phase == "inference" : predicts(*message, told);
    job.task = only_predicts ? Task::infer : Task::train;
    take_sharding_of_log(incident.log_text, job);
  }
  return job;
}

namespace {

// A sentence says that FSDP is in use: it neither asks for it nor proposes or denies it.
bool uses_fsdp(const std::string& log) {
  constexpr std::string_view kOtherwise =
      "how to|how do|how can|should|could|can i|would|instead|without|not use|n't use|whether|support|try fsdp|不支持|"
      "怎么|如何|是否|能不能|?|？";
  bool uses = false;
  each_sentence(beginning(log), [&](std::string_view sentence) {
    uses = !affirmed_word(sentence, "fsdp").empty() && any_word(sentence, kOtherwise).empty();
    return uses;
  });
  return uses;
}

}  // namespace

void take_sharding_of_log(const std::string& log, Job& job) {
  if (job.task != Task::train || job.parallel.sharding) return;
  if (log.find("colossal") != std::string::npos) return;  // it has its own ZeRO, without DeepSpeed's options
  // Named without its stage.
  if (own_program(job.system) && !affirmed_word(log, "deepspeed").empty()) {
    job.system = System::deepspeed;
    job.parallel.deepspeed = true;
  }
  const bool third = any_in(log, kThird), second = any_in(log, kSecond);
  if (!third && !second && !job.parallel.deepspeed && (any_in(log, kFullyShard) || uses_fsdp(log))) {
    job.parallel.sharding = Sharding::zero3;
    return;
  }
  if (third == second) return;  // none, or a comparison of both
  job.parallel.sharding = third ? Sharding::zero3 : Sharding::zero2;
  job.parallel.deepspeed = true;
  if (own_program(job.system)) job.system = System::deepspeed;
}

}  // namespace headroom::doctor
