#include "doctor/model/settings.h"

#include <algorithm>

#include "base/error.h"
#include "doctor/config/defaults.h"

namespace headroom::doctor {
namespace {

bool transformers_trainer(System system) {
  return system == System::hf_trainer || system == System::trl || system == System::axolotl ||
         system == System::llamafactory || system == System::oumi;
}

Library library_of(System system) {
  if (system == System::torchtune) return Library::torchtune;
  if (system == System::litgpt) return Library::litgpt;
  return system == System::neox ? Library::megatron : Library::transformers;
}

bool before(const Version& version, int major, int minor) {
  return version.major > 0 && (version.major < major || (version.major == major && version.minor < minor));
}

double positive(const std::optional<int64_t>& value, double fallback) {
  return value && *value > 0 ? static_cast<double>(*value) : fallback;
}

struct Resolver {
  const Job& job;
  const ModelShape& shape;
  const std::optional<Gpu>& gpu;
  const Software& software;
  std::vector<std::string>& assumptions;
  SystemDefaults defaults = job_defaults(job);
  TrainSettings s{};

  void assume(std::string text) { assumptions.push_back(std::move(text)); }

  void batch() {
    s.batch = static_cast<double>(effective_micro_batch(job));
    if (!job.batch.micro) assume(fmt::format("micro-batch {} (not stated)", s.batch));
    s.accumulation = positive(job.batch.accumulation, 1);
    const double devices = positive(job.devices.gpus, 1) * positive(job.devices.nodes, 1);
    if (!job.batch.accumulation && job.batch.global)
      s.accumulation = std::max(1.0, std::floor(static_cast<double>(*job.batch.global) / (s.batch * devices)));
    if (!job.batch.sequence)
      assume(
          fmt::format("sequences of {} tokens (not stated; the longest sample decides)", assumed_sequence(job, shape)));
    s.sequence = positive(job.batch.sequence, static_cast<double>(assumed_sequence(job, shape)));
    s.eval_batch = positive(job.evaluation.batch, 0);
    s.workers = positive(job.load.workers, 0);
  }

  void parallelism() {
    s.tensor = positive(job.parallel.tensor, 1);
    s.pipeline = positive(job.parallel.pipeline, 1);
    s.context = positive(job.parallel.context, 1);
    s.expert = positive(job.parallel.expert, 1);
    const double devices = positive(job.devices.gpus, 1) * positive(job.devices.nodes, 1);
    s.world = std::max(1.0, devices / (s.tensor * s.pipeline));
    s.sharding = job.parallel.sharding.value_or(s.world > 1 ? Sharding::ddp : Sharding::none);
    if (s.sharding == Sharding::hybrid)
      s.world = std::max(1.0, positive(job.devices.gpus, 1) / (s.tensor * s.pipeline));
    s.deepspeed = job.system == System::deepspeed || job.system == System::neox || !job.parallel.buffers.empty();
    s.buffers = job.parallel.buffers;
    s.offload_parameters = job.parallel.offload_parameters.value_or(Offload::none);
    s.offload_optimizer = job.parallel.offload_optimizer.value_or(Offload::none);
    s.prefetched_units =
        (job.parallel.forward_prefetch.value_or(false) || job.parallel.backward_prefetch.value_or(true)) ? 1 : 0;
    if (s.sharding != Sharding::none && s.sharding != Sharding::ddp && s.world == 1 && !job.devices.gpus)
      assume("one device (not stated): sharding saves nothing");
  }

  // The type in which the system loads the weights to be trained.
  std::string default_weights(const std::string& mixed, bool half_gpu) const {
    const bool quantised = job.precision.quantization.value_or("none") != "none";
    if (transformers_trainer(job.system) && quantised) return "bfloat16";
    std::string stored(defaults.weight_dtype.value.value_or("float32"));
    if (stored == "checkpoint") stored = shape.stored_dtype.empty() ? "float32" : shape.stored_dtype;
    // LLaMA-Factory loads in the products' type and casts the trained weights to float32 (parser.py, adapter.py).
    if (job.system == System::llamafactory) stored = job.lora ? (mixed == "none" ? stored : mixed) : "float32";
    if (job.system == System::axolotl) stored = mixed == "none" ? "float32" : mixed;
    if (job.system == System::litgpt) stored = mixed == "none" ? "bfloat16" : "float32";
    return stored == "bfloat16" && !half_gpu && job.system != System::oumi ? "float16" : stored;
  }

  void precision() {
    const bool half_gpu = !gpu || gpu->bf16;
    std::string mixed = job.precision.autocast.value_or(std::string(defaults.autocast.value.value_or("none")));
    if (!job.precision.autocast && mixed == "bfloat16" && !half_gpu) mixed = "float16";
    if (!job.precision.autocast && job.precision.weights && *job.precision.weights != "float32") mixed = "none";
    s.autocast = !mixed.empty() && mixed != "none";
    std::string stored = job.precision.weights.value_or("");
    if (stored.empty()) {
      stored = default_weights(mixed, half_gpu);
      assume(fmt::format("weights in {} (not stated)", stored));
    }
    if (!job.precision.autocast && s.autocast) assume(fmt::format("{} mixed precision (not stated)", mixed));
    s.weight_width = dtype_width(stored) > 0 ? dtype_width(stored) : 4;
    s.compute_width = s.autocast ? (mixed == "float32" ? 4 : 2) : s.weight_width;
    if (s.deepspeed && s.autocast) {  // DeepSpeed's engine casts the module itself and has its own float32 masters
      s.weight_width = 2;
      s.autocast = false;
    }
    if (s.autocast && s.weight_width < 4) s.autocast = false;
    s.quantization = job.precision.quantization.value_or("none") == "none" ? "" : *job.precision.quantization;
    if (!s.quantization.empty() && s.weight_width > 2) s.weight_width = 2;
    if (!s.quantization.empty()) s.compute_width = 2;
    s.cast_products = !s.deepspeed && !mixed.empty() && mixed != "none";
    s.prepared_kbit = job.lora && prepares_kbit();
  }

  // Systems that call PEFT's prepare_model_for_kbit_training on a base that bitsandbytes quantised. DeepSpeed's engine
  // casts everything back to the 16-bit type; axolotl does so where a flash kernel needs it; LLaMA-Factory by default
  // does not cast norms and tables.
  bool prepares_kbit() const {
    const std::string& kind = s.quantization;
    const bool bitsandbytes = kind.rfind("nf4", 0) == 0 || kind.rfind("fp4", 0) == 0 || kind == "int8";
    if (!bitsandbytes || s.deepspeed || s.library != Library::transformers) return false;
    if (job.system == System::llamafactory) return false;
    return job.system != System::axolotl || job.compute.attention.value_or("").find("flash") == std::string::npos;
  }

  void kernels() {
    const bool old = before(software.transformers, 4, 36);
    std::string kernel = job.compute.attention.value_or("");
    if (kernel.empty()) {
      const bool only_eager = shape.family == "gptj";  // its class has no sdpa
      kernel =
          old || shape.encoder_decoder || only_eager ? "eager" : std::string(defaults.attention.value.value_or("sdpa"));
      assume(fmt::format("{} attention (not stated)", kernel));
    }
    const bool eager = kernel == "eager" || kernel == "math" || kernel == "naive";
    const bool flash = kernel.find("flash") != std::string::npos || kernel.find("flex") != std::string::npos;
    if (eager)
      s.attention = AttentionKernel::eager;
    else if (s.library == Library::torchtune || s.library == Library::litgpt ||
             (kernel == "sdpa" && transformers_trainer(job.system)))
      s.attention = AttentionKernel::fused_repeated;  // a padding mask rules out the kernels for grouped heads
    else
      s.attention = AttentionKernel::fused;
    if (flash && gpu && !gpu->flash_attention && !s.cpu)
      assume(fmt::format("{} has no flash-attention kernels: the job will stop with an error", gpu->name));
    // torch's CPU kernel does not support dropout: the plain formula is used instead.
    if (s.cpu && shape.attention_dropout > 0) s.attention = AttentionKernel::eager;
    const bool default_on = defaults.checkpointing.value.value_or(false);
    if (!job.compute.checkpointing)
      assume(fmt::format("activation checkpointing {} (not stated)", default_on ? "on" : "off"));
    if (job.compute.checkpointing.value_or(default_on)) {
      s.checkpointing = job.compute.checkpointing_kind == "selective" || job.compute.checkpointing_kind == "attention"
                            ? Checkpointing::selective
                            : Checkpointing::full;
    }
    s.activation_offload = job.compute.activation_offload.value_or(false);
    s.compiled = job.compute.compile.value_or(false);
  }

  void optimizer() {
    s.optimizer = job.optimizer.name.value_or("");
    const bool fused_default = transformers_trainer(job.system) && !before(software.torch, 2, 8);
    // On a quantised base LitGPT uses bitsandbytes' PagedAdamW whichever AdamW is asked for (litgpt/utils.py).
    if (job.system == System::litgpt && !s.quantization.empty()) s.optimizer = "paged_adamw";
    if (s.optimizer.empty()) {
      s.optimizer = fused_default ? "adamw_fused" : "adamw";
      assume(fmt::format("optimizer {} (not stated)", s.optimizer));
    }
    if (job.optimizer.fused.value_or(false) && s.optimizer == "adamw") s.optimizer = "adamw_fused";
    s.state_width = s.weight_width;
    if (s.deepspeed && s.weight_width < 4) s.state_width = 4;
    if (job.optimizer.dtype && dtype_width(*job.optimizer.dtype) > 0) s.state_width = dtype_width(*job.optimizer.dtype);
    s.optimizer_in_backward = job.optimizer.in_backward.value_or(false);
    const bool recipes_fuse = s.library == Library::torchtune || s.library == Library::litgpt;
    s.foreach_optimizer = !s.cpu && !recipes_fuse && !s.deepspeed && s.optimizer.find("fused") == std::string::npos &&
                          s.optimizer != "adamw_hf";
    s.fake_quantised = job.precision.fake_quantised.value_or(false);
    s.gradients_kept = before(software.torch, 2, 0);
  }

  void adapters() {
    s.lora = job.lora.has_value();
    if (!s.lora) return;
    s.lora_settings = *job.lora;
    const bool peft = s.library == Library::transformers;
    s.adapter_width = peft ? 4 : s.weight_width;
    s.state_width = s.adapter_width;
    if (s.lora_settings.targets.empty()) assume("LoRA on the system's default modules (not stated)");
  }

  // Liger's patches include its fused linear cross-entropy.
  bool liger() const { return job.compute.liger.value_or(false); }

  void loss() {
    const bool trainer = transformers_trainer(job.system);
    if (shape.labels > 0 || (shape.encoder_only && shape.vocab == 0))
      s.loss = LossKind::none;
    else if (job.compute.chunked_loss.value_or(liger()))
      s.loss = s.library == Library::torchtune ? LossKind::chunked : LossKind::fused_chunked;
    else if (s.library == Library::litgpt && job.objective != "pretrain")
      s.loss = LossKind::half_pieces;
    else if (s.library == Library::litgpt || (job.compute.flash_loss_upcast && !*job.compute.flash_loss_upcast))
      s.loss = LossKind::half;
    else
      s.loss = before(software.transformers, 4, 45) ? LossKind::upcast_old : LossKind::upcast;
    s.logits_float_output = (s.autocast || s.cast_products) && trainer;
    s.outputs_alive = s.library == Library::transformers;
  }
};

}  // namespace

double dtype_width(const std::string& name) {
  const auto has = [&](const char* part) { return name.find(part) != std::string::npos; };
  if (has("bf16") || has("bfloat16") || has("fp16") || has("float16") || has("half") || name == "16") return 2;
  if (has("32") || name == "float") return 4;
  if (has("64") || name == "double") return 8;
  if (has("8")) return 1;
  if (has("4")) return 0.5;
  return 0;
}

int64_t assumed_sequence(const Job& job, const ModelShape& shape) {
  if (shape.encoder_only && shape.vocab == 0) return shape.max_positions;
  if (const std::optional<int64_t> stated = effective_sequence(job))
    return shape.max_positions > 0 ? std::clamp<int64_t>(*stated, 1, shape.max_positions)
                                   : std::max<int64_t>(1, *stated);
  int64_t length = shape.encoder_only ? 512 : 2048;
  // LitGPT pretrains with the model's whole context; its finetuning cuts at the longest row.
  if (job.system == System::litgpt) length = job.objective == "pretrain" ? shape.max_positions : 4096;
  return shape.max_positions > 0 ? std::min(length, shape.max_positions) : std::max<int64_t>(1, length);
}

TrainSettings resolve_training(const Job& job, const ModelShape& shape, const std::optional<Gpu>& gpu,
                               const Software& software, std::vector<std::string>& assumptions) {
  Resolver resolver{job, shape, gpu, software, assumptions};
  resolver.s.system = job.system;
  resolver.s.library = library_of(job.system);
  resolver.s.cpu = gpu && gpu->name == "CPU";
  resolver.batch();
  resolver.parallelism();
  resolver.precision();
  resolver.kernels();
  resolver.optimizer();
  resolver.adapters();
  resolver.loss();
  return resolver.s;
}

}  // namespace headroom::doctor
