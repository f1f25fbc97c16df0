// The memory model of PyTorch-based trainers and of servers: the memory that a job will take, as a range.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "doctor/config/job.h"
#include "doctor/model/model_shape.h"

namespace headroom::doctor {

// A GPU as jobs use it.
struct Gpu {
  std::string name;            // "A100-40GB"
  int64_t memory_bytes = 0;    // total memory as cudaMemGetInfo reports it
  int compute_capability = 0;  // 80 = 8.0; 0: not NVIDIA
  bool bf16 = false;           // in hardware
  bool flash_attention = false;
  double flops_half = 0, flops_single = 0, bandwidth = 0;  // per second; dense
};
// Accepts names as people write them ("a100-40gb", "4090", "V100", "h100"). "cpu" is PyTorch on the CPU: no context,
// the C library's allocator, and estimates of resident memory. nullopt when unknown.
std::optional<Gpu> find_gpu(const std::string& name);
const std::vector<Gpu>& known_gpus();

// Versions that matter, if known (from a log or a lock file); 0.0 means the current release.
struct Version {
  int major = 0, minor = 0;
};
struct Software {
  Version torch, transformers;
};

struct Term {
  std::string name;  // weights, gradients, optimizer, activations, logits, temporaries, workspace, context, kv_cache...
  int64_t bytes = 0;
  std::string phase;  // phase of the term's peak: load, forward, backward, optimizer_step, eval, save, serve
  std::string how;    // the formula with its numbers, for --verbose
};

struct Estimate {
  int64_t low_bytes = 0, likely_bytes = 0, high_bytes = 0;  // peak per device, as nvidia-smi would show it
  std::string peak_phase;
  std::vector<Term> terms;      // at the peak, largest first; the sum is likely_bytes
  int64_t allocated_bytes = 0;  // PyTorch's max_memory_allocated at the peak, likely
  int64_t reserved_bytes = 0;   // PyTorch's max_memory_reserved, likely
  int64_t host_low_bytes = 0, host_likely_bytes = 0, host_high_bytes = 0;  // per process
  int64_t disk_bytes = 0;
  std::optional<int64_t> kv_tokens;      // servers: tokens that the KV cache can hold on `gpu`
  double step_seconds = 0;               // 0 when no GPU was named
  std::vector<std::string> assumptions;  // the defaults that were used, one line each
};

// A pure function. Fields that the job leaves open get the system's defaults, each listed in `assumptions`.
// For a CPU (Gpu named "CPU"), likely_bytes is the growth of the process's resident memory after its imports.
Estimate estimate(const Job& job, const ModelShape& shape, const std::optional<Gpu>& gpu,
                  const Software& software = {});

// Bytes of KV cache per token on one device: 2 x layers x KV heads x head width x bytes, with the KV heads split over
// `tensor_parallel` devices (at least one each). Latent attention caches one vector per layer instead, on every device.
double kv_bytes_per_token(const ModelShape& shape, double element_bytes, int64_t tensor_parallel = 1);

// Tokens of KV cache that fit in `bytes`, in whole blocks of `block` tokens.
int64_t kv_tokens_in(double bytes, const ModelShape& shape, double element_bytes, int64_t block = 16,
                     int64_t tensor_parallel = 1);

}  // namespace headroom::doctor
