// A training job with nothing left open: the job's fields, else the system's own defaults.
#pragma once

#include <string>
#include <vector>

#include "doctor/model/estimate.h"
#include "doctor/model/fitted_constants.h"

namespace headroom::doctor {

enum class AttentionKernel { eager, fused, fused_repeated };  // fused_repeated: keys and values copied to every head
enum class Checkpointing { none, selective, full };
enum class LossKind { upcast, upcast_old, half, half_pieces, chunked, fused_chunked, none };
enum class Library { transformers, torchtune, litgpt, megatron };  // whose modules compute the layers

struct TrainSettings {
  System system = System::unknown;
  Library library = Library::transformers;
  bool cpu = false, deepspeed = false, compiled = false;
  double batch = 1, accumulation = 1, sequence = 1, eval_batch = 0;
  double world = 1, tensor = 1, pipeline = 1, context = 1, expert = 1;
  double weight_width = 4;     // bytes of a stored weight
  double compute_width = 4;    // bytes of an activation that a matrix product reads
  bool autocast = false;       // weights stay in weight_width, products run in compute_width
  bool cast_products = false;  // products run under torch.autocast, whatever width the weights have
  // PEFT's prepare_model_for_kbit_training: every weight that is not quantised is cast to float32, and with the
  // embedding's output the residual stream is float32.
  bool prepared_kbit = false;
  AttentionKernel attention = AttentionKernel::fused;
  Checkpointing checkpointing = Checkpointing::none;
  bool activation_offload = false;
  std::string optimizer = "adamw";
  double state_width = 4;
  bool optimizer_in_backward = false, foreach_optimizer = false;
  bool gradients_kept = false;  // zero_grad() of torch before 2.0 fills with zeros instead of freeing
  bool fake_quantised = false;  // quantisation-aware training
  bool lora = false;
  LoraSettings lora_settings;
  double adapter_width = 4;
  std::string quantization;  // of the base weights, empty for none
  LossKind loss = LossKind::upcast;
  bool logits_float_output = false;  // accelerate converts a mixed-precision model's outputs to float32
  bool outputs_alive = false;        // a hand-written loop keeps the outputs until the next step
  Sharding sharding = Sharding::none;
  Offload offload_parameters = Offload::none, offload_optimizer = Offload::none;
  double prefetched_units = 1;
  double workers = 0;
  std::map<std::string, int64_t> buffers;
  FittedConstants fitted;

  // Bytes per element of the residual stream: float32 under autocast and after PEFT's preparation.
  double residual_width() const { return autocast || prepared_kbit ? 4 : compute_width; }
  // Of what a linear layer returns: bitsandbytes' layers return the type of their input, whatever they compute in.
  double output_width() const { return prepared_kbit ? 4 : compute_width; }
  // Of attention's operands: autocast casts them again.
  double attention_width() const { return cast_products ? compute_width : output_width(); }
  double tokens() const { return batch * sequence / context; }
  // Nothing of the base model is trained.
  bool frozen() const { return lora; }
};

// Applies the defaults; each one applied is a line of `assumptions`.
TrainSettings resolve_training(const Job& job, const ModelShape& shape, const std::optional<Gpu>& gpu,
                               const Software& software, std::vector<std::string>& assumptions);

// Tokens per sequence where neither the job nor its system's default says so; at least 1.
int64_t assumed_sequence(const Job& job, const ModelShape& shape);

// Bytes per element of a dtype's name ("float32", "bf16", "int8" ...), 0 when unknown.
double dtype_width(const std::string& name);

}  // namespace headroom::doctor
