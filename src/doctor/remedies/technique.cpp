#include "doctor/remedies/technique.h"

#include "base/error.h"
#include "passes/bf16_mixed.h"
#include "passes/bf16_true.h"
#include "passes/chunked_loss.h"
#include "passes/flash_attention.h"
#include "passes/freeze.h"
#include "passes/fused_optimizer.h"
#include "passes/length_buckets.h"
#include "passes/lora.h"
#include "passes/micro_batch.h"
#include "passes/offload_activations.h"
#include "passes/offload_optimizer.h"
#include "passes/offload_parameters.h"
#include "passes/packing.h"
#include "passes/prefetch.h"
#include "passes/qat.h"
#include "passes/quantize_training.h"
#include "passes/quantize_weights.h"
#include "passes/recompute.h"
#include "passes/sequence_chunks.h"
#include "passes/shard.h"

namespace headroom::doctor {
namespace {

using enum TechniqueKind;

constexpr Technique kTechniques[] = {
    // batch and data
    {"micro-batch", "T01 T02", kMicroBatch, "flag", 1.05, 0.5, "same global batch, summed in smaller pieces"},
    {"auto-batch", "T01", reassociating, "flag", 1.1, 1, "retries with a smaller batch after each failure",
     "accelerate"},
    {"sequence-length", "T10", lossy, "flag", 1.0, 5, "tokens beyond the cut are not seen"},
    {"shorter-pack", "T11", kPacking, "flag", 1.0, 2, "packed rows become shorter; every token is still seen"},
    {"length-buckets", "T11", kLengthBuckets, "flag", 0.9, 1.5, "rows of like length share a batch"},
    {"sequence-chunks", "T03", kSequenceChunks, "code", 1.1, 0.5, "the MLP and the loss run over pieces of a sequence",
     "deepspeed >= 0.17"},
    {"eval-batch", "T28", exact, "flag", 1.0, 0, "evaluation in smaller pieces, same figures"},
    {"eval-accumulation", "T28", exact, "flag", 1.05, 0, "predictions move to the host as they come"},
    {"no-grad", "T28 T32", exact, "code", 0.9, 0, "nothing is saved for a backward pass that never comes"},
    {"input-size", "T10", lossy, "flag", 0.8, 3, "smaller images, crops or volumes: less detail is seen"},
    {"find-sample", "T39", exact, "code", 1.0, 0, "shows whether one odd sample is to blame"},
    // code that holds on to memory
    {"detach-history", "T31", exact, "code", 1.0, 0, "graphs of past steps are freed; same gradients"},
    {"map-location", "T45", exact, "code", 1.0, 0, "the file is read into host memory; same weights"},
    // precision
    {"mixed-precision", "T04", kBf16Mixed, "flag", 0.6, 1, "products in 16 bits, weights and sums in 32"},
    {"half-weights", "T05", kBf16True, "flag", 0.6, 3, "weights, gradients and states in 16 bits"},
    {"half-inference", "T32", lossy, "flag", 0.6, 1, "weights and products in 16 bits"},
    // checkpointing
    {"checkpointing", "T06", kRecompute, "flag", 1.25, 0, "one more forward pass; same gradients"},
    {"activation-offload", "T13", kOffloadActivations, "config", 1.2, 0, "saved activations wait in host memory",
     "torch >= 2.1"},
    // optimizer
    {"fused-optimizer", "T07", reassociating, "flag", 0.97, 0.2, "the same update without whole-model temporaries",
     "torch >= 2.0"},
    {"optimizer-8bit", "T08", lossy, "install", 1.0, 2, "states in 8 bits, block by block", "bitsandbytes >= 0.41"},
    {"paged-optimizer", "T09", exact, "install", 1.15, 0, "states move to the host when the device is full",
     "bitsandbytes >= 0.41, CUDA"},
    {"adafactor", "T07", lossy, "flag", 1.1, 4, "second moments by rows and columns; another optimizer"},
    {"lion", "T07", lossy, "install", 1.0, 5, "one state instead of two; another optimizer", "bitsandbytes >= 0.41"},
    {"sgd", "T07", lossy, "flag", 0.95, 9, "no second moments; transformers often train poorly with it"},
    {"optimizer-in-backward", "T07", kFusedOptimizer, "flag", 1.0, 0.5, "each gradient is used and freed as it comes"},
    {"set-to-none", "T31", exact, "code", 1.0, 0, "gradients are freed between steps, not zeroed"},
    // several devices, host and disk
    {"shard", "T12 T43", kShard, "config", 1.15, 0.5, "weights, gradients and states split over the GPUs",
     "torch >= 1.12"},
    {"shard-more", "T12", kShard, "config", 1.1, 0.5, "weights are split too and gathered layer by layer"},
    {"offload-optimizer", "T13", kOffloadOptimizer, "config", 1.6, 0, "states and update on the host"},
    {"offload-parameters", "T13", kOffloadParameters, "config", 2.5, 0, "weights come over the bus for every layer"},
    {"offload-nvme", "T15", exact, "config", 5.0, 0, "weights and states on a local disk", "libaio, a local NVMe"},
    {"no-prefetch", "T14", kPrefetch, "config", 1.15, 0, "one layer's weights at a time"},
    {"smaller-buckets", "T15 T30", exact, "config", 1.05, 0, "smaller communication buffers"},
    {"context-parallel", "T17", reassociating, "config", 1.15, 0.5, "each GPU holds a part of every sequence"},
    {"ddp", "T30", reassociating, "code", 0.8, 0.5, "every GPU holds the same; no gathering on the first"},
    {"bucket-view", "T30", exact, "code", 1.0, 0, "gradients live in DDP's buckets, not beside them"},
    // kernels
    {"flash-attention", "T16", kFlashAttention, "config", 0.85, 0.2, "the S x S scores are never stored"},
    {"compile", "T18", reassociating, "flag", 0.85, 0.5, "elementwise chains share one temporary", "torch >= 2.1"},
    {"liger", "T19", reassociating, "install", 0.9, 0.3, "logits, norms and gates are never stored whole",
     "liger-kernel >= 0.3, Triton"},
    {"chunked-loss", "T19", kChunkedLoss, "flag", 1.0, 0.3, "the logits exist a chunk at a time"},
    // fewer or smaller weights
    {"lora", "T21", kLora, "config", 0.85, 6, "trains small added matrices only", "peft"},
    {"qlora", "T22", kQuantizeWeights, "install", 1.3, 8, "frozen base in 4 bits, small added matrices trained",
     "bitsandbytes >= 0.43, peft"},
    {"freeze", "T20", kFreeze, "config", 0.8, 8, "the frozen layers learn nothing"},
    {"int8-training", "T23", kQuantizeTraining, "code", 1.2, 8, "weights live in 8 bits", "torchao >= 0.7 (prototype)"},
    {"no-qat", "T24", kQat, "config", 0.8, 4, "the rounding is no longer trained for"},
    // allocator
    {"expandable-segments", "T27", exact, "flag", 1.0, 0, "changes where memory lies, not what is computed",
     "torch >= 2.1"},
    {"max-split-size", "T27", exact, "flag", 1.02, 0, "changes where memory lies, not what is computed",
     "torch >= 1.10"},
    {"own-allocator", "T27", exact, "flag", 1.05, 0, "changes where memory lies, not what is computed"},
    {"grow-on-demand", "T27", exact, "flag", 1.0, 0, "leaves room to other processes"},
    {"empty-cache", "T27", exact, "flag", 1.1, 0, "gives unused blocks back between steps"},
    {"end-other-processes", "T43", exact, "flag", 1.0, 0, "nothing of yours changes"},
    {"low-vram", "T32", exact, "flag", 2.0, 0, "parts of the model wait in host memory"},
    {"no-sysmem-fallback", "T27", exact, "flag", 1.0, 0, "fails at once instead of crawling in host memory"},
    {"on-cpu", "T43", exact, "flag", 20.0, 0, "the same arithmetic, far slower"},
    // serving
    {"gpu-memory-utilization", "T35", exact, "flag", 1.0, 0, "moves memory between the KV cache and the rest"},
    {"max-model-len", "T36", lossy, "flag", 1.0, 2, "longer requests are refused"},
    {"max-sequences", "T36", exact, "flag", 1.1, 0.5, "fewer requests at once, same answers"},
    {"batched-tokens", "T36", exact, "flag", 1.1, 0, "long prompts are read in smaller pieces"},
    {"kv-dtype", "T33", lossy, "flag", 1.0, 2, "keys and values in 8 bits"},
    {"eager", "T34", exact, "flag", 1.15, 0, "no captured graphs"},
    {"quantized-model", "T25", kQuantizeWeights, "config", 0.9, 4, "weights in 4 or 8 bits"},
    {"tensor-parallel", "T37", kShard, "hardware", 0.8, 0.5, "every layer split over the GPUs"},
    {"fewer-images", "T36", lossy, "flag", 1.0, 2, "fewer or smaller images per request"},
    {"serve-offload", "T37", exact, "flag", 4.0, 0, "a part of the weights stays on the host"},
    {"gpu-layers", "T37", exact, "flag", 2.5, 0, "fewer layers on the device, the others on the CPU"},
    // host and files
    {"fewer-workers", "T29", exact, "flag", 1.05, 0, "the same data, loaded by fewer processes"},
    {"pageable-memory", "T29", exact, "flag", 1.03, 0, "batches are not kept in pinned memory"},
    {"shared-memory", "T29", exact, "flag", 1.0, 0, "workers get room in /dev/shm"},
    {"host-memory", "T43", exact, "flag", 1.0, 0, "asks the scheduler for more"},
    {"lean-load", "T45", exact, "config", 1.0, 0, "weights are read into place, one shard at a time"},
    {"sharded-save", "T44", exact, "config", 1.0, 0, "each process writes its own part"},
    {"save-adapter", "T44", exact, "code", 1.0, 0, "the small added matrices are all that was trained"},
    {"plain-init", "T45", exact, "config", 1.0, 0, "weights are made whole and then split"},
    {"no-offload", "T13", exact, "config", 0.7, 0, "states and weights stay on the GPUs"},
    {"more-swap", "T43", exact, "config", 1.3, 0, "slow where it is really used"},
    {"measure", "T39", exact, "code", 1.0, 0, "shows which line holds what", "torch >= 2.1"},
    {"other-version", "T39", exact, "install", 1.0, 0, "another release of the same program"},
    // hardware and model
    {"larger-gpu", "T43", exact, "hardware", 1.0, 0, "same run on a larger device"},
    {"smaller-model", "T26", lossy, "config", 0.5, 15, "another, weaker model"},
};

}  // namespace

std::span<const Technique> all_techniques() { return kTechniques; }

const Technique& technique(std::string_view name) {
  for (const Technique& known : kTechniques)
    if (known.name == name) return known;
  HR_CHECK(false, "no technique '{}'", name);
  return kTechniques[0];
}

std::string needs_in(const Technique& technique, System system) {
  const bool adapters = technique.name == "lora" || technique.name == "qlora";
  if (adapters && system == System::torchtune) return technique.name == "lora" ? "" : "torchao";
  if (adapters && system == System::litgpt) return technique.name == "lora" ? "" : "bitsandbytes 0.42";
  if (technique.name == "offload-optimizer") {
    if (system == System::pytorch_script || system == System::unknown) return "torchao >= 0.10";
    if (system == System::torchtune) return "torchao >= 0.10, a single-device recipe";
    return system == System::deepspeed || system == System::neox ? "a compiler for DeepSpeed's CPU Adam"
                                                                 : "deepspeed, a compiler for its CPU Adam";
  }
  if (technique.name == "chunked-loss" && system == System::trl) return "trl >= 1.4 (SFT; the default since 1.7)";
  return std::string(technique.needs);
}

}  // namespace headroom::doctor
