#include "doctor/remedies/case_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "base/find_text.h"
#include "doctor/config/defaults.h"
#include "doctor/config/setting.h"
#include "doctor/remedies/changes.h"
#include "doctor/remedies/log_job.h"
#include "doctor/remedies/program_words.h"

namespace headroom::doctor {
namespace {

struct FrameMark {
  std::string_view part;
  System system;
};
// The most specific ones first.
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

bool in_identifier(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

// "0卡" in "3090卡"
bool continues_a_number(std::string_view text, size_t at) {
  return at > 0 && std::isdigit(static_cast<unsigned char>(text[at])) != 0 &&
         std::isdigit(static_cast<unsigned char>(text[at - 1])) != 0;
}

// A word that is not denied. A key with its value ("cache: true", "cache=true") does not continue another key
// ("overwrite_cache: true").
bool stands_there(std::string_view text, std::string_view word) {
  const size_t value = word.find_first_of(":=");
  const bool key = value != std::string_view::npos && value + 1 < word.size() && in_identifier(word.front());
  for (size_t at = find_text(text, word); at != std::string_view::npos; at = find_text(text, word, at + 1))
    if ((!key || at == 0 || !in_identifier(text[at - 1])) && !continues_a_number(text, at) &&
        !denied(text, at, at + word.size()))
      return true;
  return false;
}

std::string_view first_in(std::string_view text, std::string_view words) {
  while (!words.empty()) {
    const std::string_view word = words.substr(0, words.find('|'));
    if (stands_there(text, word)) return word;
    words.remove_prefix(std::min(words.size(), word.size() + 1));
  }
  return {};
}

// A server's cache gets the memory that weights and workspace leave. An error of a few percent of those changes its
// tokens by more; a tenth covers that.
constexpr double kSureTokens = 1.1;

bool full_length_fits(const Job& job, const ModelShape& shape, const Estimate& estimate, bool surely) {
  if (job.task != Task::serve || !estimate.kv_tokens) return true;
  const int64_t length = job.serving.max_model_len.value_or(shape.max_positions);
  const double least = static_cast<double>(length) * (surely ? kSureTokens : 1.0);
  // llama.cpp's cache has the requested size; the cache of others takes the rest of the device.
  const bool asked = job.system == System::llama_server;
  return length <= 0 || static_cast<double>(*estimate.kv_tokens) >= (asked ? static_cast<double>(length) : least);
}

// vLLM and SGLang fill their share of the device, so that they need that share and not the estimate.
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

bool in_4_bits(const Job& job) {
  const std::string kind = job.precision.quantization.value_or("none");
  return kind.starts_with("nf4") || kind.starts_with("fp4");
}

// The estimate of a 4-bit base assumes that the loader quantises the linear layers. A job that already runs with one
// confirms that. Nothing confirms it for a job that would change to one, nor for experts, which some releases store in
// tensors that the loader does not quantise.
std::string doubt_of_4bit_base(const Job& job, const Job& changed, const ModelShape& shape) {
  if (!in_4_bits(changed)) return {};
  if (shape.experts > 0) return "not every release loads experts in 4 bits: look at the bytes after loading";
  return in_4_bits(job) ? "" : "what the loader keeps in 16 bits is not known: look at the bytes after loading";
}

// The text of the message and its frames in lower case.
std::string text_of(const Message* message) {
  if (!message) return {};
  std::string text = "\n" + message->text;
  for (const Frame& frame : message->frames)
    text += fmt::format("\nfile \"{}\", in {}\n{}", frame.file, frame.function, frame.code);
  return lower(text);
}

}  // namespace

std::string_view CaseView::log_says(std::string_view words) const {
  const auto [said, fresh] = said_.try_emplace(words);
  if (fresh) said->second = first_in(log_text_, words);
  return said->second;
}
std::string_view CaseView::setup_says(std::string_view words) const { return first_in(incident_.setup_text, words); }

System system_of(const Message& message) {
  // TRL's rollouts run in vLLM, so the message may be vLLM's.
  for (const Frame& frame : message.frames)
    if (frame.file.find("/trl/trainer/") != std::string::npos) return System::trl;
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

Story story_of(const Case& incident) { return incident.story ? *incident.story : read_story(incident.log_text); }

CaseView::CaseView(const Case& incident, const Estimator& estimator)
    : incident_(incident),
      estimator_(estimator),
      message_(main_message(incident)),
      balance_(balance_of(incident)),
      pool_(pool_of(incident)) {
  log_text_ = incident.log_text + text_of(message_);
  known_log_.emplace(incident.log_text);
  known_log_text_.emplace(log_text_);
  reinforcement_library_ = reinforcement_of(log_text_);
  if (reinforcement_library_.empty()) reinforcement_library_ = reinforcement_of(incident.setup_text);
  story_ = story_of(incident);
  job_ = incident.job ? *incident.job : job_of_log(incident, message_, reinforcement_library_, story_.task);
  take_plain_inference();
  if (message_) figures_ = figures_of(*message_);
  take_other_program();
  if (!reinforcement_library_.empty() && figures_.foreign) {
    // The library's own server may be another process, or be in this one outside PyTorch's allocator.
    figures_.unattributed = figures_.foreign;
    figures_.foreign.reset();
  }
  style_ = style_of(job_);
}

bool CaseView::in_a_step() const {
  return phase("backward") || phase("optimizer_step") || phase("optimizer_init") || phase("training");
}

void CaseView::take_plain_inference() {
  if (incident_.job || !reinforcement_library_.empty() || job_.task != Task::train || in_a_step()) return;
  inference_ = plain_inference(incident_.log_text, incident_.setup_text, story_);
  if (inference_.empty()) return;
  job_.task = Task::infer;
  job_.parallel = {};
}

// PyTorch's own message has figures; the driver's bare error may be any program's.
void CaseView::take_other_program() {
  if (incident_.job || !message_ || figures_.requested || figures_.allocated) return;
  const std::string& by = message_->framework;
  if (by == "cuda" || by == "pytorch-cuda" || is_other_program(by))
    other_program_ = headroom::doctor::other_program(log_text_, incident_.setup_text);
}

bool CaseView::shows_pytorch() const {
  if (has_job() || !own_program(job_.system)) return true;
  // A person's words are assumed to be of PyTorch.
  if (message_ && message_->framework.starts_with("pytorch") && message_->format != "words") return true;
  return speaks_of_pytorch(log_text_) || speaks_of_pytorch(incident_.setup_text);
}

bool CaseView::figures_ignore_the_system() const {
  return shape() && shape()->guessed && training() && job_.parallel.deepspeed && !job_.parallel.sharding;
}

bool CaseView::caching_allocator() const {
  if (pool_ != Pool::device) return false;
  if (message_)
    return message_->framework == "pytorch-cuda" || message_->framework == "pytorch-hip" ||
           message_->framework == "pytorch-xpu";
  return training();
}

std::string_view CaseView::framework() const {
  if (!message_) return {};
  if (!other_program_.name.empty()) return other_program_.name;
  const bool library = message_->framework == "cublas" || message_->framework == "cudnn";
  if (library &&
      !log_says("tensorflow|tf_jenkins|keras|textgenrnn|gpt_2_simple|mask_rcnn|stellargraph|deeplabcut|autokeras")
           .empty())
    return "tensorflow";
  if (library && !log_says("jaxlib|jax/_src|xla_bridge").empty()) return "jax";
  const bool words = message_->framework == "pytorch-cuda" && message_->format == "words" && message_->frames.empty();
  if (words && named_framework(incident_.log_text, incident_.setup_text) == "paddle") return "paddle";
  return message_->framework;
}

bool CaseView::foreign_framework() const {
  if (has_job() || !message_ || pool_ != Pool::device) return false;
  for (const std::string_view name :
       {"tensorflow", "jax", "xla-tpu", "onnxruntime", "paddle", "cupy", "mlx", "lmdeploy", "tensorrt-llm"})
    if (framework() == name) return true;
  return is_other_program(framework());
}

std::optional<int64_t> CaseView::micro_batch() const {
  // The defaults of the user's own script are unknown.
  const bool own = job_.system == System::pytorch_script || job_.system == System::unknown;
  if (own && !incident_.estimate && !job_.batch.micro && !job_.batch.global) return std::nullopt;
  if (job_.batch.micro || !has_job()) return job_.batch.micro;
  if (!job_.batch.global && !job_defaults(job_).micro_batch.value) return std::nullopt;
  return effective_micro_batch(job_);
}

int64_t CaseView::accumulation() const {
  if (job_.batch.accumulation) return std::max<int64_t>(1, *job_.batch.accumulation);
  const std::optional<int64_t> micro = micro_batch();
  if (!has_job() || !job_.batch.global || !micro) return 1;
  const int64_t split = std::max<int64_t>(1, job_.parallel.tensor.value_or(1) * job_.parallel.pipeline.value_or(1));
  const int64_t replicas = std::max<int64_t>(1, gpus() / split);
  return std::max<int64_t>(1, *job_.batch.global / replicas / *micro);
}

std::optional<int64_t> CaseView::sequence() const {
  if (serving() && job_.serving.max_model_len) return job_.serving.max_model_len;
  if (!has_job()) return job_.batch.sequence;
  if (const std::optional<int64_t> stated = effective_sequence(job_)) return stated;
  // The memory model's assumption when only the data determine it.
  if (!shape() || !training()) return std::nullopt;
  const int64_t assumed = shape()->encoder_only ? 512 : 2048;
  return shape()->max_positions > 0 ? std::min(assumed, shape()->max_positions) : assumed;
}

bool CaseView::sharded() const {
  return job_.parallel.sharding == Sharding::zero3 || job_.parallel.sharding == Sharding::hybrid;
}

bool CaseView::zero() const {
  const bool stage =
      job_.parallel.sharding == Sharding::zero1 || job_.parallel.sharding == Sharding::zero2 || sharded();
  return stage && !fsdp() &&
         (job_.system == System::deepspeed || job_.system == System::neox || job_.parallel.deepspeed ||
          !job_.parallel.buffers.empty() || job_.parallel.sharding == Sharding::zero1);
}

bool CaseView::fsdp() const {
  if (job_.parallel.deepspeed || !job_.parallel.buffers.empty()) return false;
  return (sharded() || job_.parallel.sharding == Sharding::zero2) && job_.system != System::deepspeed &&
         job_.system != System::neox;
}

bool CaseView::quantized_base() const { return job_.precision.quantization && *job_.precision.quantization != "none"; }

bool CaseView::half_weights() const {
  return job_.precision.weights && (*job_.precision.weights == "bfloat16" || *job_.precision.weights == "float16");
}

bool CaseView::mixed() const {
  if (job_.precision.autocast || !has_job()) return job_.precision.autocast.value_or("none") != "none";
  const std::optional<std::string_view> usual = job_defaults(job_).autocast.value;
  return usual && *usual != "none" && !job_.precision.weights;
}

bool CaseView::checkpointing() const {
  const bool settings = has_job() || incident_.quoted;
  if (job_.compute.checkpointing || !settings) return job_.compute.checkpointing.value_or(false);
  return job_defaults(job_).checkpointing.value.value_or(false);
}

double CaseView::trainable_share() const {
  if (!lora() || !shape() || shape()->parameters <= 0) return lora() ? 0.01 : 1.0;
  // Two matrices of rank r per target: about r * (in + out); seven targets in a gated block, two by default.
  const double targets =
      job_.lora->all_linear ? 7 : static_cast<double>(std::max<size_t>(2, job_.lora->targets.size()));
  const double added = static_cast<double>(shape()->layers) * targets * 2.0 * static_cast<double>(shape()->hidden) *
                       static_cast<double>(job_.lora->rank);
  return std::min(1.0, added / shape()->parameters);
}

std::optional<Estimate> CaseView::after(const Changes& changes) const {
  if (!shape() || !has_job()) return std::nullopt;
  return estimator_(with_changes(job_, changes), *shape(), gpu());
}

int64_t CaseView::likely_of(const Estimate& estimate) const {
  return pool_ == Pool::device ? estimate.likely_bytes : estimate.host_likely_bytes * processes_per_node(job_);
}

std::optional<int64_t> CaseView::need_after(const Changes& changes) const {
  const std::optional<Estimate> changed = after(changes);
  if (!changed) return std::nullopt;
  return likely_of(*changed) + balance_.unexplained;
}

std::optional<int64_t> CaseView::saving(const Changes& changes) const {
  const std::optional<int64_t> need = need_after(changes);
  if (!need || !balance_.need || figures_ignore_the_system()) return std::nullopt;
  return *balance_.need - *need;
}

std::optional<int64_t> CaseView::most_after(const Changes& changes) const {
  const std::optional<Estimate> changed = after(changes);
  if (!changed || !doubt_after(changes).empty()) return std::nullopt;
  if (takes_a_share(job_)) return changed->likely_bytes + balance_.unexplained;
  const int64_t high =
      pool_ == Pool::device ? changed->high_bytes : changed->host_high_bytes * processes_per_node(job_);
  return high + balance_.unexplained;
}

bool CaseView::fits_after(const Changes& changes) const {
  const std::optional<int64_t> most = most_after(changes);
  return most && balance_.limit && *most <= *balance_.limit && likely_after(changes) &&
         full_length_fits(with_changes(job_, changes), *shape(), *after(changes), true);
}

bool CaseView::likely_after(const Changes& changes) const {
  const std::optional<Estimate> changed = after(changes);
  if (!changed || !balance_.limit || failed_beside_the_estimate() || figures_ignore_the_system()) return false;
  return fits(likely_of(*changed) + balance_.unexplained, *balance_.limit) &&
         full_length_fits(with_changes(job_, changes), *shape(), *changed, false);
}

bool CaseView::failed_beside_the_estimate() const {
  return message_ && serving() && shape() && sees_images(job_, *shape());
}

bool CaseView::enough_after(const Changes& changes) const {
  return doubt_after(changes).empty() ? fits_after(changes) : likely_after(changes);
}

std::string CaseView::doubt_after(const Changes& changes) const {
  if (!shape() || !has_job()) return "the model is unknown: add --model config.json or NAME";
  if (sees_images(job_, *shape()))
    return fmt::format("images take memory that is not in the estimate: {}",
                       serving() ? "start it with fewer of them" : "measure with --probe");
  if (incident_.gpu_is_told) return "the device is known by the post's words alone: give --gpu NAME";
  if (shape()->guessed) return "the model's shape is guessed: give --model config.json";
  if (const std::string& library = job_.library; !library.empty())
    return library + " brings modules of its own: measure with --probe";
  if (incident_.job_is_quoted)
    return "the text may quote only a part of the job's settings: give its file with --config";
  if (!job_.unseen_script.empty())
    return fmt::format("{} may set more than its options: give it with --config", job_.unseen_script);
  if (training() && cuts_answers_apart())
    return "answers have a length of their own (max_target_length), which the estimate leaves out: measure with "
           "--probe";
  if (!job_.keys.unknown.empty())
    return fmt::format("{} is not understood and may take memory: give the script, or measure with --probe",
                       job_.keys.unknown.front().origin.key);
  if (job_.system == System::llama_server && !job_.precision.quantization && job_.model.ends_with(".gguf"))
    return "the type of the weights in the file is not known: see its name or `gguf-dump`";
  if (job_.system == System::llama_server && !with_changes(job_, changes).serving.max_model_len)
    return "the context that is taken without one differs between releases: give -c N";
  if (job_.system == System::llama_server && shape()->kv_latent > 0)
    return "releases before 2025 keep the keys and values of all heads of this model: start it with -c 4096 first";
  if (message_ && job_.task == Task::serve)
    return "what the server measures at its start is not in the estimate: start it with these";
  if (pool_ != Pool::device) return "what a node's processes hold together is not known: `free -h`, `sacct -o MaxRSS`";
  const Job changed = with_changes(job_, changes);
  if (changed.task == Task::train) {
    if (const std::string doubt = doubt_of_4bit_base(job_, changed, *shape()); !doubt.empty()) return doubt;
    // Published runs of such jobs exceeded the high end (benchmarks/results/doctor_estimates.md).
    const bool split = changed.parallel.tensor.value_or(1) > 1 || changed.parallel.pipeline.value_or(1) > 1 ||
                       changed.parallel.context.value_or(1) > 1;
    const Sharding sharding = changed.parallel.sharding.value_or(Sharding::none);
    const bool sharded_states = sharding != Sharding::none && sharding != Sharding::ddp &&
                                changed.devices.gpus.value_or(1) * changed.devices.nodes.value_or(1) > 1;
    if (changed.precision.quantization == "int8")
      return "8-bit layers keep copies that the estimate does not bound: try one step, or --probe";
    if (split || sharded_states)
      return "what devices gather from each other is estimated, not bounded: try one step, or --probe";
    if (job_.system == System::unknown) return "the training program is unknown: measure with --probe";
    if (!effective_sequence(changed) && !(shape()->encoder_only && shape()->vocab == 0))
      return "the longest sample decides: give --max-seq-length N";
    if (!changed.batch.micro && !changed.batch.global && !job_defaults(changed).micro_batch.value)
      return "the batch is not stated: give --micro-batch-size N";
  }
  // A run that failed although its high end is below the limit uses memory that the estimate does not know.
  if (message_ && incident_.estimate && balance_.limit && incident_.estimate->high_bytes <= *balance_.limit)
    return "the log shows more than the estimate knows: measure with --probe";
  return {};
}

bool CaseView::fits_on(const Gpu& other, bool surely) const {
  if (failed_beside_the_estimate()) return false;
  if (!shape() || !has_job()) return !surely && balance_.need && fits(*balance_.need, other.memory_bytes);
  if (surely && !doubt_after({}).empty()) return false;
  const Estimate there = estimator_(job_, *shape(), other);
  const bool within = surely && !takes_a_share(job_)
                          ? there.high_bytes + balance_.unexplained <= other.memory_bytes
                          : fits(there.likely_bytes + balance_.unexplained, other.memory_bytes);
  return within && full_length_fits(job_, *shape(), there, surely);
}

int64_t CaseView::term(std::string_view name) const {
  int64_t bytes = 0;
  if (incident_.estimate)
    for (const Term& term : incident_.estimate->terms)
      if (term.name == name) bytes += term.bytes;
  return bytes;
}

}  // namespace headroom::doctor
