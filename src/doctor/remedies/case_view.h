// A case seen by the rules: the job with its defaults, the device, the message, and how much a change would save.
#pragma once

#include "doctor/remedies/balance.h"
#include "doctor/remedies/option_text.h"
#include "doctor/remedies/remedy.h"
#include "doctor/remedies/technique.h"
#include "doctor/remedies/told_stage.h"

namespace headroom::doctor {

class CaseView {
 public:
  CaseView(const Case& incident, const Estimator& estimator);

  const Case& incident() const { return incident_; }
  const Job& job() const { return job_; }  // the system inferred from the message where no job was given
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
  // The first of the words, separated by '|' and in lower case, that stands in the log or its message; in the
  // configurations. Empty where none does.
  std::string_view log_says(std::string_view words) const;
  std::string_view setup_says(std::string_view words) const;
  // Whether the framework of the message or the system is PyTorch's with its caching allocator on a device.
  bool caching_allocator() const;
  // Of the message; where a library of CUDA reports, the framework that the log shows around it.
  std::string_view framework() const;
  // The library of a reinforcement learning whose server for rollouts shares the devices with the training: "verl",
  // "openrlhf"; empty for others. Its frames are those of vLLM and FSDP, its options are its own.
  std::string_view reinforcement_library() const { return reinforcement_library_; }
  // A device message of TensorFlow, JAX or the like, and no job: PyTorch's words would be wrong.
  bool foreign_framework() const;
  bool has_job() const { return incident_.job.has_value(); }

  // The job's value, or the system's own default; absent where neither says.
  std::optional<int64_t> micro_batch() const;
  // Steps per update: stated, or what the global batch leaves.
  int64_t accumulation() const;
  std::optional<int64_t> sequence() const;
  std::string optimizer() const { return job_.optimizer.name.value_or("adamw"); }
  int64_t gpus() const { return job_.devices.gpus.value_or(1) * job_.devices.nodes.value_or(1); }
  bool sharded() const;  // weights split: FSDP full shard or ZeRO-3
  bool zero() const;     // any of DeepSpeed's stages
  bool fsdp() const;
  bool lora() const { return job_.lora.has_value(); }
  bool quantized_base() const;
  bool half_weights() const;
  bool mixed() const;          // 16-bit products beside 32-bit weights, stated or by the system's default
  bool checkpointing() const;  // likewise
  // Trained share of the weights, 1 for full training.
  double trainable_share() const;

  // The estimate with changes applied; absent without a shape.
  std::optional<Estimate> after(const Changes& changes) const;
  // Need of the pool in question after the changes, the unexplained part kept.
  std::optional<int64_t> need_after(const Changes& changes) const;
  std::optional<int64_t> saving(const Changes& changes) const;
  // Upper end of the same. Absent where the estimate is not a bound: see doubt_after.
  std::optional<int64_t> most_after(const Changes& changes) const;
  // Proven to fit: nothing in doubt and the upper end within the limit; a server must hold one request of full length
  // with a tenth to spare.
  bool fits_after(const Changes& changes) const;
  // By the likely figure alone; what is proven is likely.
  bool likely_after(const Changes& changes) const;
  // A server that failed for what the estimate does not hold (images): nothing is likely by it.
  bool failed_beside_the_estimate() const;
  // What a size is chosen by: proven where the estimate allows proofs, else likely.
  bool enough_after(const Changes& changes) const;
  // Why the estimate after the changes bounds nothing, and what would remove the doubt; empty when it does.
  std::string doubt_after(const Changes& changes) const;
  // Whether the job as it stands fits another device of its own, as far as can be told; `surely`: proven.
  bool fits_on(const Gpu& gpu, bool surely = false) const;
  // Bytes of the estimate's terms of that name, 0 when absent.
  int64_t term(std::string_view name) const;

 private:
  // Of the pool in question; of the host for all processes of a node.
  int64_t likely_of(const Estimate& estimate) const;

  const Case& incident_;
  const Estimator& estimator_;
  Job job_;
  std::string log_text_;  // with the message's own text and frames
  std::string_view reinforcement_library_;
  Story story_;
  const Message* message_ = nullptr;
  MessageFigures figures_;
  Balance balance_;
  Pool pool_ = Pool::device;
  Style style_ = Style::python;
};

// The system whose frames or words a message shows; unknown when none does.
System system_of(const Message& message);

}  // namespace headroom::doctor
