#include "doctor/remedies/situation.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "doctor/config/defaults.h"
#include "doctor/remedies/changes.h"

namespace headroom::doctor {
namespace {

struct FrameMark {
  std::string_view part;
  System system;
};
// The most specific first.
constexpr FrameMark kFrameMarks[] = {
    {"/axolotl/", System::axolotl},
    {"/llamafactory/", System::llamafactory},
    {"/llmtuner/", System::llamafactory},
    {"/oumi/", System::oumi},
    {"/torchtune/", System::torchtune},
    {"/litgpt/", System::litgpt},
    {"/lit_gpt/", System::litgpt},
    {"/megatron/", System::neox},
    {"/vllm/", System::vllm},
    {"/sglang/", System::sglang},
    {"/trl/", System::trl},
    {"transformers/trainer", System::hf_trainer},
    {"/deepspeed/", System::deepspeed},
    {"/accelerate/", System::accelerate},
};

Job job_of(const Case& incident, const Message* message) {
  if (incident.job) return *incident.job;
  Job job;
  if (!message) return job;
  job.system = system_of(*message);
  switch (job.system) {
    case System::vllm:
    case System::sglang:
    case System::tgi:
    case System::llama_server:
      job.task = Task::serve;
      break;
    default:
      job.task = message->phase == "inference" ? Task::infer : Task::train;
  }
  return job;
}

// The tokens of a server's cache are what weights and workspace leave: an error of a few percent of these moves them by
// more, and a tenth covers it.
constexpr double kSureTokens = 1.1;

bool full_length_fits(const Job& job, const ModelShape& shape, const Estimate& estimate, bool surely) {
  if (job.task != Task::serve || !estimate.kv_tokens) return true;
  const int64_t length = job.max_model_len.value_or(shape.max_positions);
  const double least = static_cast<double>(length) * (surely ? kSureTokens : 1.0);
  // llama.cpp's cache is what was asked for; the others' is what is left.
  const bool asked = job.system == System::llama_server;
  return length <= 0 || static_cast<double>(*estimate.kv_tokens) >= (asked ? static_cast<double>(length) : least);
}

// vLLM and SGLang fill the share of the device they are given: their need is that share, no estimate.
bool takes_a_share(const Job& job) {
  return job.task == Task::serve && (job.system == System::vllm || job.system == System::sglang);
}

bool sees_images(const Job& job, const ModelShape& shape) {
  std::string name = job.model + " " + shape.name + " " + shape.family;
  std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return std::tolower(c); });
  for (const char* word : {"vision", "-vl", "vl-", "llava", "multimodal", "omni", "mllama", "pixtral", "internvl"})
    if (name.find(word) != std::string::npos) return true;
  return false;
}

}  // namespace

System system_of(const Message& message) {
  if (message.framework == "vllm") return System::vllm;
  if (message.framework == "sglang") return System::sglang;
  if (message.framework == "tgi") return System::tgi;
  if (message.framework == "llama.cpp" || message.framework == "ollama") return System::llama_server;
  for (const FrameMark& mark : kFrameMarks) {
    for (const Frame& frame : message.frames)
      if (frame.file.find(mark.part) != std::string::npos) return mark.system;
    if (message.text.find(mark.part) != std::string::npos) return mark.system;
  }
  return message.framework.starts_with("pytorch") ? System::pytorch_script : System::unknown;
}

Situation::Situation(const Case& incident, const Estimator& estimator)
    : incident_(incident),
      estimator_(estimator),
      message_(main_message(incident)),
      balance_(balance_of(incident)),
      pool_(pool_of(incident)) {
  job_ = job_of(incident, message_);
  if (message_) figures_ = figures_of(*message_);
  style_ = style_of(job_);
}

bool Situation::caching_allocator() const {
  if (pool_ != Pool::device) return false;
  if (message_)
    return message_->framework == "pytorch-cuda" || message_->framework == "pytorch-hip" ||
           message_->framework == "pytorch-xpu";
  return training();
}

bool Situation::foreign_framework() const {
  if (has_job() || !message_ || pool_ != Pool::device) return false;
  for (const std::string_view name :
       {"tensorflow", "jax", "xla-tpu", "onnxruntime", "paddle", "cupy", "mlx", "lmdeploy", "tensorrt-llm"})
    if (message_->framework == name) return true;
  return false;
}

std::optional<int64_t> Situation::micro_batch() const {
  if (job_.micro_batch || !has_job()) return job_.micro_batch;
  if (!job_.global_batch && !job_defaults(job_).micro_batch.value) return std::nullopt;
  return effective_micro_batch(job_);
}

int64_t Situation::accumulation() const {
  if (job_.accumulation) return std::max<int64_t>(1, *job_.accumulation);
  const std::optional<int64_t> micro = micro_batch();
  if (!has_job() || !job_.global_batch || !micro) return 1;
  const int64_t split = std::max<int64_t>(1, job_.tensor_parallel.value_or(1) * job_.pipeline_parallel.value_or(1));
  const int64_t replicas = std::max<int64_t>(1, gpus() / split);
  return std::max<int64_t>(1, *job_.global_batch / replicas / *micro);
}

std::optional<int64_t> Situation::sequence() const {
  if (serving() && job_.max_model_len) return job_.max_model_len;
  if (!has_job()) return job_.sequence;
  if (const std::optional<int64_t> stated = effective_sequence(job_)) return stated;
  // The memory model's assumption where only the data decide.
  if (!shape() || !training()) return std::nullopt;
  const int64_t assumed = shape()->encoder_only ? 512 : 2048;
  return shape()->max_positions > 0 ? std::min(assumed, shape()->max_positions) : assumed;
}

bool Situation::sharded() const { return job_.sharding == Sharding::zero3 || job_.sharding == Sharding::hybrid; }

bool Situation::zero() const {
  const bool stage = job_.sharding == Sharding::zero1 || job_.sharding == Sharding::zero2 || sharded();
  return stage && !fsdp() &&
         (job_.system == System::deepspeed || job_.system == System::neox || job_.extras.count("deepspeed") > 0 ||
          !job_.buffers.empty() || job_.sharding == Sharding::zero1);
}

bool Situation::fsdp() const {
  if (job_.extras.count("fsdp") > 0) return true;
  if (job_.extras.count("deepspeed") > 0 || !job_.buffers.empty()) return false;
  return (sharded() || job_.sharding == Sharding::zero2) && job_.system != System::deepspeed &&
         job_.system != System::neox;
}

bool Situation::quantized_base() const { return job_.quantization && *job_.quantization != "none"; }

std::string Situation::extra(const std::string& name) const {
  const auto at = job_.extras.find(name);
  return at == job_.extras.end() ? std::string() : at->second;
}

bool Situation::half_weights() const {
  return job_.weight_dtype && (*job_.weight_dtype == "bfloat16" || *job_.weight_dtype == "float16");
}

bool Situation::mixed() const {
  if (job_.autocast || !has_job()) return job_.autocast.value_or("none") != "none";
  const std::optional<std::string_view> usual = job_defaults(job_).autocast.value;
  return usual && *usual != "none" && !job_.weight_dtype;
}

bool Situation::checkpointing() const {
  if (job_.checkpointing || !has_job()) return job_.checkpointing.value_or(false);
  return job_defaults(job_).checkpointing.value.value_or(false);
}

double Situation::trainable_share() const {
  if (!lora() || !shape() || shape()->parameters <= 0) return lora() ? 0.01 : 1.0;
  // Two matrices per target of rank r: about r * (in + out); seven targets of a gated block, two by default.
  const double targets =
      job_.lora->all_linear ? 7 : static_cast<double>(std::max<size_t>(2, job_.lora->targets.size()));
  const double added = static_cast<double>(shape()->layers) * targets * 2.0 * static_cast<double>(shape()->hidden) *
                       static_cast<double>(job_.lora->rank);
  return std::min(1.0, added / shape()->parameters);
}

std::optional<Estimate> Situation::after(const Changes& changes) const {
  if (!shape() || !has_job()) return std::nullopt;
  return estimator_(with_changes(job_, changes), *shape(), gpu());
}

std::optional<int64_t> Situation::need_after(const Changes& changes) const {
  const std::optional<Estimate> changed = after(changes);
  if (!changed) return std::nullopt;
  const int64_t need = pool_ == Pool::device ? changed->likely_bytes : changed->host_likely_bytes;
  return need + balance_.unexplained;
}

std::optional<int64_t> Situation::saving(const Changes& changes) const {
  const std::optional<int64_t> need = need_after(changes);
  if (!need || !balance_.need) return std::nullopt;
  return *balance_.need - *need;
}

std::optional<int64_t> Situation::most_after(const Changes& changes) const {
  const std::optional<Estimate> changed = after(changes);
  if (!changed || !doubt_after(changes).empty()) return std::nullopt;
  if (takes_a_share(job_)) return changed->likely_bytes + balance_.unexplained;
  return (pool_ == Pool::device ? changed->high_bytes : changed->host_high_bytes) + balance_.unexplained;
}

bool Situation::fits_after(const Changes& changes) const {
  const std::optional<int64_t> most = most_after(changes);
  return most && balance_.limit && *most <= *balance_.limit && likely_after(changes) &&
         full_length_fits(with_changes(job_, changes), *shape(), *after(changes), true);
}

bool Situation::likely_after(const Changes& changes) const {
  const std::optional<Estimate> changed = after(changes);
  if (!changed || !balance_.limit) return false;
  const int64_t need = pool_ == Pool::device ? changed->likely_bytes : changed->host_likely_bytes;
  return fits(need + balance_.unexplained, *balance_.limit) &&
         full_length_fits(with_changes(job_, changes), *shape(), *changed, false);
}

bool Situation::enough_after(const Changes& changes) const {
  return doubt_after(changes).empty() ? fits_after(changes) : likely_after(changes);
}

std::string Situation::doubt_after(const Changes& changes) const {
  if (!shape() || !has_job()) return "the model is unknown: add --model config.json or NAME";
  if (shape()->guessed) return "the model's shape is guessed: give --model config.json";
  if (const std::string library = extra("library"); !library.empty())
    return library + " brings modules of its own: measure with --probe";
  if (!job_.unknown.empty())
    return fmt::format("{} is not understood and may take memory: give the script, or measure with --probe",
                       job_.unknown.front().origin.key);
  if (job_.system == System::llama_server && !job_.quantization && job_.model.ends_with(".gguf"))
    return "the type of the weights in the file is not known: see its name or `gguf-dump`";
  if (pool_ != Pool::device) return "what a node's processes hold together is not known: `free -h`, `sacct -o MaxRSS`";
  if (sees_images(job_, *shape())) return "images take memory that is not in the estimate: measure with --probe";
  const Job changed = with_changes(job_, changes);
  if (changed.task == Task::train) {
    // Published runs of such jobs went beyond the upper end (benchmarks/results/doctor_estimates.md).
    const bool split = changed.tensor_parallel.value_or(1) > 1 || changed.pipeline_parallel.value_or(1) > 1 ||
                       changed.context_parallel.value_or(1) > 1;
    const Sharding sharding = changed.sharding.value_or(Sharding::none);
    const bool sharded_states = sharding != Sharding::none && sharding != Sharding::ddp &&
                                changed.gpus.value_or(1) * changed.nodes.value_or(1) > 1;
    if (split || sharded_states)
      return "what devices gather from each other is estimated, not bounded: try one step, or --probe";
    if (job_.system == System::unknown) return "the training program is unknown: measure with --probe";
    if (!effective_sequence(changed) && !(shape()->encoder_only && shape()->vocab == 0))
      return "the longest sample decides: give --max-seq-length N";
    if (!changed.micro_batch && !changed.global_batch && !job_defaults(changed).micro_batch.value)
      return "the batch is not stated: give --micro-batch-size N";
  }
  // A run that ended although its upper end is below the limit has more in memory than the estimate knows.
  if (message_ && incident_.estimate && balance_.limit && incident_.estimate->high_bytes <= *balance_.limit)
    return "the log shows more than the estimate knows: measure with --probe";
  return {};
}

bool Situation::fits_on(const Gpu& other, bool surely) const {
  if (!shape() || !has_job()) return !surely && balance_.need && fits(*balance_.need, other.memory_bytes);
  if (surely && !doubt_after({}).empty()) return false;
  const Estimate there = estimator_(job_, *shape(), other);
  const bool within = surely && !takes_a_share(job_)
                          ? there.high_bytes + balance_.unexplained <= other.memory_bytes
                          : fits(there.likely_bytes + balance_.unexplained, other.memory_bytes);
  return within && full_length_fits(job_, *shape(), there, surely);
}

int64_t Situation::term(std::string_view name) const {
  int64_t bytes = 0;
  if (incident_.estimate)
    for (const Term& term : incident_.estimate->terms)
      if (term.name == name) bytes += term.bytes;
  return bytes;
}

}  // namespace headroom::doctor
