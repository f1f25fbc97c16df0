// A case as the rules use it: the job with its defaults, the device, the message, and the saving of a change.
#pragma once

#include <optional>
#include <unordered_map>

#include "base/find_text.h"
#include "doctor/remedies/balance.h"
#include "doctor/remedies/option_text.h"
#include "doctor/remedies/remedy.h"
#include "doctor/remedies/technique.h"
#include "doctor/remedies/told_stage.h"
#include "doctor/remedies/which_program.h"

namespace headroom::doctor {

class CaseView {
 public:
  CaseView(const Case& incident, const Estimator& estimator);

  const Case& incident() const { return incident_; }
  const Job& job() const { return job_; }  // with the system of the message when no job was given
  const Message* message() const { return message_; }
  const MessageFigures& figures() const { return figures_; }
  const Balance& balance() const { return balance_; }
  Pool pool() const { return pool_; }
  const std::optional<Gpu>& gpu() const { return incident_.gpu; }
  const std::optional<ModelShape>& shape() const { return incident_.shape; }
  Style style() const { return style_; }

  const Story& story() const { return story_; }  // what the log's words tell
  bool training() const { return job_.task == Task::train; }
  bool serving() const { return job_.task == Task::serve; }
  bool phase(std::string_view name) const { return message_ && message_->phase == name; }
  bool in_a_step() const;  // of a training, by its phase
  // The first of the words (in lower case, separated by '|') that is in the log or its message, or in the
  // configurations. Empty when none is. `words` are literals: they outlive the view.
  std::string_view log_says(std::string_view words) const;
  std::string_view setup_says(std::string_view words) const;
  // Whether one of the two does.
  bool says(std::string_view words) const { return !log_says(words).empty() || !setup_says(words).empty(); }
  // Whether the message or the system is one of PyTorch's caching allocator on a device.
  bool caching_allocator() const;
  // The message's framework; when a CUDA library reports the error, the framework that the log shows around it.
  std::string_view framework() const;
  // The reinforcement learning library ("verl", "openrlhf") whose rollout server shares the devices with the training;
  // empty for others. It has frames of vLLM and FSDP, and its own options.
  std::string_view reinforcement_library() const { return reinforcement_library_; }
  // The program that the inputs show around a message without figures: Darknet, Caffe and the like.
  const OtherProgram& other_program() const { return other_program_; }
  // Something shows PyTorch: a job, its message with figures, frames, its name, its code, or a library built on it.
  bool shows_pytorch() const;
  // A device message of TensorFlow, JAX or the like without a job: advice for PyTorch would be wrong.
  bool foreign_framework() const;
  bool has_job() const { return incident_.job.has_value(); }

  // The word that shows a program that only infers; empty where none does.
  std::string_view inference_word() const { return inference_; }
  // The log names DeepSpeed without a stage: figures of a shape that is guessed say nothing of that job.
  bool figures_ignore_the_system() const;

  // The job's value, or the system's default; absent when neither is known.
  std::optional<int64_t> micro_batch() const;
  // Steps per update: stated, or derived from the global batch.
  int64_t accumulation() const;
  std::optional<int64_t> sequence() const;
  // Prompts and answers are cut at lengths of their own: the estimate has the prompts' only.
  bool cuts_answers_apart() const { return job_.keys.origins.contains("extras.target_sequence"); }
  std::string optimizer() const { return job_.optimizer.name.value_or("adamw"); }
  int64_t gpus() const { return job_.devices.gpus.value_or(1) * job_.devices.nodes.value_or(1); }
  bool sharded() const;  // weights are sharded: FSDP full shard or ZeRO-3
  bool zero() const;     // any stage of DeepSpeed's ZeRO
  bool fsdp() const;
  bool lora() const { return job_.lora.has_value(); }
  bool quantized_base() const;
  bool half_weights() const;
  bool mixed() const;          // 16-bit products with 32-bit weights, stated or by default
  bool checkpointing() const;  // stated or by default
  // Share of the weights that is trained; 1 for full training.
  double trainable_share() const;

  // The estimate with the changes applied; absent without a shape.
  std::optional<Estimate> after(const Changes& changes) const;
  // The need in the pool after the changes, plus the unexplained part.
  std::optional<int64_t> need_after(const Changes& changes) const;
  std::optional<int64_t> saving(const Changes& changes) const;
  // The high end of that need. Absent when the estimate is not a bound (see doubt_after).
  std::optional<int64_t> most_after(const Changes& changes) const;
  // Whether it is proven to fit: there is no doubt and the high end is within the limit. A server must also have room
  // for one request of full length and a tenth more.
  bool fits_after(const Changes& changes) const;
  // Whether the likely figure fits. What is proven is also likely.
  bool likely_after(const Changes& changes) const;
  // A server that failed because of something outside the estimate (images): its likely figure means nothing.
  bool failed_beside_the_estimate() const;
  // The criterion for choosing a size: proven if the estimate allows proofs, else likely.
  bool enough_after(const Changes& changes) const;
  // Why the estimate after the changes is not a bound, and what would remove the doubt; empty when it is one.
  std::string doubt_after(const Changes& changes) const;
  // Whether the unchanged job fits another device alone, as far as is known. `surely`: proven.
  bool fits_on(const Gpu& gpu, bool surely = false) const;
  // Bytes of the estimate's terms with that name, 0 when there is none.
  int64_t term(std::string_view name) const;

 private:
  // In the pool; for host memory, of all processes of a node.
  int64_t likely_of(const Estimate& estimate) const;

  void take_plain_inference();
  void take_other_program();

  const Case& incident_;
  const Estimator& estimator_;
  Job job_;
  std::string log_text_;  // includes the message's text and frames
  std::optional<KnownText> known_log_, known_log_text_;
  // What log_says found, by its words: the rules ask the same several times. For one thread.
  mutable std::unordered_map<std::string_view, std::string_view> said_;
  std::string_view reinforcement_library_;
  std::string_view inference_;
  OtherProgram other_program_;
  Story story_;
  const Message* message_ = nullptr;
  MessageFigures figures_;
  Balance balance_;
  Pool pool_ = Pool::device;
  Style style_ = Style::python;
};

// What the words of the case's log tell.
Story story_of(const Case& incident);

// The system that a message's frames or words show, else unknown.
System system_of(const Message& message);

}  // namespace headroom::doctor
