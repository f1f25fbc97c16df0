#include "doctor/answer/log_facts.h"

#include <algorithm>
#include <string_view>

#include "doctor/remedies/log_job.h"
#include "doctor/remedies/posted_numbers.h"
#include "doctor/remedies/told_stage.h"

namespace headroom::doctor {
namespace {

// Whether a clause of the log has one of the words and does not deny, ask about or compare it.
bool in_use(const std::string& log, std::string_view words) {
  constexpr std::string_view kOtherwise =
      "without|not |n't|instead|no longer|disable|unless|turned off|switched off|16 off|whether|should|could|can i|how "
      "to|try |tried|if |"
      "full fine|full-parameter|全参|不用|没有|未使用|不使用|关闭|是否|吗|怎么|如何|能不能|なし|使わ|できます|?|？";
  bool used = false;
  each_sentence(beginning(log), [&](std::string_view sentence) {
    each_clause(sentence, [&](std::string_view clause) {
      used = !any_word(clause, words).empty();
      for (std::string_view rest = kOtherwise; used && !rest.empty();) {
        const std::string_view word = rest.substr(0, rest.find('|'));
        used = clause.find(word) == std::string_view::npos;
        rest.remove_prefix(word.size() < rest.size() ? word.size() + 1 : rest.size());
      }
      return used;
    });
    return used;
  });
  return used;
}

void take_precision(const std::string& log, Job& job) {
  if (!job.precision.quantization) {
    if (in_use(log, "qlora|load_in_4bit=true|load_in_4bit: true|quantization_bit: 4|quantization_bit 4"))
      job.precision.quantization = "nf4";
    else if (in_use(log, "load_in_8bit=true|load_in_8bit: true|quantization_bit: 8|quantization_bit 8"))
      job.precision.quantization = "int8";
  }
  if (job.precision.autocast || job.precision.weights) return;
  const bool bf16 = in_use(log, "bf16|bfloat16"), fp16 = in_use(log, "fp16|float16");
  if (bf16 != fp16) job.precision.autocast = bf16 ? "bfloat16" : "float16";
}

// The least length at which the post says that its texts are cut.
void take_length(const std::string& log, Job& job) {
  constexpr std::string_view kNames =
      "cutoff_len|cutoff_length|max_seq_length|max_seq_len|seq_length|sequence_length|sequence_len|max_length|block_"
      "size|"
      "model_max_length|截断长度|最大长度|序列长度";
  constexpr int64_t kLeast = 16, kMost = int64_t{1} << 21;
  const std::optional<int64_t> length = posted_value(log, kNames);
  if (!job.batch.sequence && length && *length >= kLeast && *length <= kMost) job.batch.sequence = length;
}

// Weights that several devices share, by a server's or a script's own option; each device has its part only.
void take_shards(const std::string& log, Job& job) {
  if (job.task == Task::train || job.parallel.tensor) return;
  const int64_t shards = posted_shards(log);
  if (shards <= 1) return;
  job.parallel.tensor = shards;
  job.devices.gpus = std::max(shards, job.devices.gpus.value_or(1));
}

}  // namespace

void take_facts_of_log(const std::string& log, Job& job) {
  take_sharding_of_log(log, job);
  take_shards(log, job);
  if (job.task != Task::train) return;
  if (!job.parallel.sharding && !job.parallel.deepspeed && in_use(log, "deepspeed") &&
      log.find("colossal") == std::string::npos) {
    job.parallel.deepspeed = true;
    if (own_program(job.system)) job.system = System::deepspeed;
  }
  if (!job.lora && in_use(log, "lora$|qlora$|peft$")) job.lora = LoraSettings{};
  take_precision(log, job);
  take_length(log, job);
}

void take_facts_beside_a_file(const std::string& log, Job& job) {
  if (job.task != Task::train) return;
  if (job.parallel.deepspeed) take_sharding_of_log(log, job);
  if (job.system == System::deepspeed) take_length(log, job);
  constexpr std::string_view kEightBits =
      "8bit量化|8bit quantization|8-bit quantization|loaded in 8bit|loaded in 8-bit|in int8";
  if (!job.precision.quantization && in_use(log, kEightBits)) job.precision.quantization = "int8";
}

void take_facts_of_the_trainer(Job& job) {
  const int64_t devices = job.devices.gpus.value_or(1) * job.devices.nodes.value_or(1);
  if (job.system != System::litgpt || job.task != Task::train || devices < 2) return;
  if (!job.parallel.sharding) job.parallel.sharding = Sharding::zero3;
  if (!job.lora && !job.compute.checkpointing) job.compute.checkpointing = true;
}

}  // namespace headroom::doctor
