// A training job with every setting known: the job's value, else the system's default.
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
  bool autocast = false;       // weights stay in weight_width, products are computed in compute_width
  bool cast_products = false;  // products run under torch.autocast, whatever the weights' type
  // PEFT's prepare_model_for_kbit_training casts every weight that is not quantised to float32. The embedding's output
  // is then float32, and with it the residual stream.
  bool prepared_kbit = false;
  AttentionKernel attention = AttentionKernel::fused;
  Checkpointing checkpointing = Checkpointing::none;
  bool activation_offload = false;
  std::string optimizer = "adamw";
  double state_width = 4;
  bool optimizer_in_backward = false, foreach_optimizer = false;
  bool gradients_kept = false;  // zero_grad() of torch before 2.0 fills with zeros and does not free
  bool fake_quantised = false;  // quantisation-aware training
  bool lora = false;
  LoraSettings lora_settings;
  double adapter_width = 4;
  std::string quantization;  // of the base weights; empty: none
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
  // Bytes per element of a linear layer's output: bitsandbytes layers return the type of their input, whatever they
  // compute in.
  double output_width() const { return prepared_kbit ? 4 : compute_width; }
  // Bytes per element of attention's operands: autocast casts them again.
  double attention_width() const { return cast_products ? compute_width : output_width(); }
  double tokens() const { return batch * sequence / context; }
  // Whether all of the base model is frozen.
  bool frozen() const { return lora; }
};

// Applies the defaults, with a line of `assumptions` for each.
TrainSettings resolve_training(const Job& job, const ModelShape& shape, const std::optional<Gpu>& gpu,
                               const Software& software, std::vector<std::string>& assumptions);

// Tokens per sequence when neither the job nor the system's default says; at least 1.
int64_t assumed_sequence(const Job& job, const ModelShape& shape);

// Bytes per element of a dtype by name ("float32", "bf16", "int8" ...); 0 when unknown.
double dtype_width(const std::string& name);

}  // namespace headroom::doctor
