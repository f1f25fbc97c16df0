// Servers: weights, the profiled peak of a prefill, captured graphs. The KV cache takes the rest of the device, or what
// was asked for.
#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "doctor/model/activation_memory.h"
#include "doctor/model/device_overheads.h"
#include "doctor/model/settings.h"
#include "doctor/model/train_estimate.h"
#include "doctor/model/weight_memory.h"

namespace headroom::doctor {
namespace {

constexpr double kMi = 1048576.0;
constexpr double kGi = 1073741824.0;

double count(const std::optional<int64_t>& value, double fallback) {
  return value && *value > 0 ? static_cast<double>(*value) : fallback;
}

struct Server {
  const Job& job;
  const ModelShape& shape;
  const std::optional<Gpu>& gpu;
  std::vector<std::string>& assumptions;
  double tensor = 1, pipeline = 1, width = 2, kv_width = 2, length = 0;
  double weights = 0, activations = 0, graphs = 0, context = 0;
  std::string weights_how{}, activations_how{};

  void assume(std::string text) { assumptions.push_back(std::move(text)); }

  void widths() {
    std::string stored = job.precision.weights.value_or(shape.stored_dtype.empty() ? "bfloat16" : shape.stored_dtype);
    const bool server = job.task == Task::serve;
    if (!server && !job.precision.weights) stored = "float32";  // default of from_pretrained before transformers 5
    width = stored == "float32" && !job.precision.weights && server
                ? 2
                : std::max(0.5, dtype_width(stored));  // "auto" halves float32
    if (width <= 0.5 && !job.precision.weights) width = 2;
    const std::string kv = job.serving.kv_dtype.value_or("auto");
    kv_width = kv == "auto" || dtype_width(kv) <= 0 ? std::min(width, 2.0) : dtype_width(kv);
    tensor = count(job.parallel.tensor, 1);
    pipeline = count(job.parallel.pipeline, 1);
    length = count(job.serving.max_model_len, static_cast<double>(std::max<int64_t>(1, shape.max_positions)));
    if (!job.serving.max_model_len)
      assume(fmt::format("context of {:.0f} tokens (not stated: the model's own)", length));
  }

  void model(double device_share) {
    const std::string method = job.precision.quantization.value_or("none");
    const double matrix = method == "none" ? width : quantized_width(method);
    const double rest = shape.parameters - shape.linear_parameters;
    weights = (shape.linear_parameters * matrix + rest * width) / (tensor * pipeline) * device_share;
    weights_how = fmt::format("({:.0f} x {} B + {:.0f} x {} B) / {:.0f}", shape.linear_parameters, matrix, rest, width,
                              tensor * pipeline / device_share);
    if (job.serving.cpu_offload_bytes)
      weights = std::max(0.0, weights - static_cast<double>(*job.serving.cpu_offload_bytes));
  }

  // The profiling run of vLLM and SGLang: `batched` tokens through one layer, logits of `sequences` rows with the
  // float32 copies of sampling.
  void profile(double batched, double sequences) {
    const double inner =
        static_cast<double>(shape.experts > 0 ? shape.moe_intermediate * shape.experts_per_token : shape.intermediate);
    const double hidden = static_cast<double>(shape.hidden);
    const double layer = batched * width * (3 * inner / tensor + 4 * hidden);
    const double logits = sequences * static_cast<double>(shape.vocab) * (width / tensor + 3 * 4);
    activations = std::max(layer, logits) + batched * hidden * width;
    activations_how = fmt::format("{:.0f} tokens through a layer, or logits of {:.0f} sequences", batched, sequences);
  }
};

double element_count(const ModelShape& shape, int64_t tensor) {
  const double layers = static_cast<double>(shape.layers);
  if (shape.kv_latent > 0) return layers * static_cast<double>(shape.kv_latent);
  const double heads =
      std::max(1.0, static_cast<double>(shape.kv_heads) / static_cast<double>(std::max<int64_t>(1, tensor)));
  return layers * heads * 2 * static_cast<double>(shape.head_dim);
}

void add(Estimate& e, const char* name, double bytes, const std::string& how) {
  e.terms.push_back({name, whole_bytes(bytes), "serve", how});
}

// vLLM and SGLang: the cache takes the rest of a stated fraction of the device.
void paged_server(Server& server, Estimate& e, const Job& job) {
  const bool sglang = job.system == System::sglang;
  const double sequences = count(job.serving.max_sequences, 256);
  const double batched = count(job.serving.max_batched_tokens,
                               sglang ? 8192 : std::max(2048.0, job.serving.eager.value_or(false) ? 2048.0 : 8192.0));
  server.model(1);
  server.profile(batched, std::min(sequences, batched));
  const double total = server.gpu ? static_cast<double>(server.gpu->memory_bytes) : 0;
  const double share = job.serving.gpu_memory_utilization.value_or(sglang ? 0.88 : 0.92);
  if (!job.serving.gpu_memory_utilization)
    server.assume(fmt::format("{} of the device's memory (the default of current releases)", share));
  server.graphs = job.serving.eager.value_or(false) ? 0 : 0.6 * kGi;
  const double outside = server.context + 0.1 * kGi * (server.tensor > 1 ? 8 : 1);  // NCCL's buffers
  const double element = server.kv_width;
  const int64_t tensor = static_cast<int64_t>(server.tensor);
  double kv = 0;
  // SGLang's fraction covers weights and cache; vLLM's also covers the profiled peak and memory outside torch.
  if (total > 0) kv = share * total - server.weights - (sglang ? 0 : server.activations + outside);
  if (job.serving.kv_cache_bytes) kv = static_cast<double>(*job.serving.kv_cache_bytes);
  const double least = server.length * element_count(server.shape, tensor) * element;
  if (total <= 0 && !job.serving.kv_cache_bytes) {
    kv = least;
    server.assume("no GPU named: the KV cache of one full sequence");
  }
  e.kv_tokens = kv_tokens_in(std::max(0.0, kv), server.shape, element, count(job.serving.kv_block_size, 16), tensor);
  add(e, "weights", server.weights, server.weights_how);
  add(e, "kv_cache", kv,
      fmt::format("{} tokens x {:.0f} B", *e.kv_tokens, element_count(server.shape, tensor) * element));
  add(e, "activations", server.activations, server.activations_how);
  add(e, "context", outside, "CUDA context, libraries and communication buffers");
  add(e, "graphs", server.graphs, "captured CUDA graphs, outside the stated fraction");
  if (*e.kv_tokens < static_cast<int64_t>(std::min(server.length, 9e18)))
    server.assume(
        fmt::format("the cache holds {} tokens, less than one sequence of {:.0f}: the server will refuse to start",
                    *e.kv_tokens, server.length));
}

// llama.cpp: the cache has n_ctx tokens for all slots together. Layers that are not on the device stay on the host.
void llama_server(Server& server, Estimate& e, const Job& job) {
  const double layers = static_cast<double>(server.shape.layers);
  const double asked =
      job.serving.gpu_layers ? static_cast<double>(std::max<int64_t>(0, *job.serving.gpu_layers)) : layers + 1;
  const double share = std::min(1.0, asked / (layers + 1));  // the output layer counts as one more
  server.model(share);
  const double kv = server.length * element_count(server.shape, 1) * server.kv_width * std::min(1.0, asked / layers);
  const double batch = count(job.serving.max_batched_tokens, 512);
  const double compute = batch * (static_cast<double>(server.shape.vocab) * 4 +
                                  6 * static_cast<double>(server.shape.hidden + server.shape.intermediate) * 4);
  e.kv_tokens = whole_bytes(server.length);
  add(e, "weights", server.weights, fmt::format("{} x {:.2f} of the layers", server.weights_how, share));
  add(e, "kv_cache", kv,
      fmt::format("{:.0f} tokens x {:.0f} B", server.length, element_count(server.shape, 1) * server.kv_width));
  add(e, "temporaries", compute, fmt::format("compute buffer for {:.0f} tokens", batch));
  add(e, "context", server.context, "CUDA context");
}

// Without torch.no_grad() a forward pass keeps what a backward pass would need, even after eval().
void add_saved_activations(Server& server, Estimate& e, const Job& job) {
  if (job.compute.no_grad.value_or(true)) return;
  std::vector<std::string> defaults;
  const TrainSettings settings = resolve_training(job, server.shape, server.gpu, {}, defaults);
  add(e, "saved activations", network_activations(server.shape, settings).kept.bytes,
      "kept for a backward pass that never comes: no torch.no_grad()");
}

// Generation with the cache of a library such as transformers.
void plain_inference(Server& server, Estimate& e, const Job& job) {
  server.model(1);
  const double batch = count(job.batch.micro, count(job.evaluation.batch, 1));
  const double prompt = count(job.batch.sequence, static_cast<double>(assumed_sequence(job, server.shape)));
  const bool generates = !server.shape.encoder_only && server.shape.labels == 0;
  const double tokens = prompt + count(job.serving.max_new_tokens, 256);
  server.profile(batch * prompt, batch);
  const double kv = generates ? batch * tokens * element_count(server.shape, 1) * server.kv_width / server.tensor : 0;
  add(e, "weights", server.weights, server.weights_how);
  add(e, "kv_cache", kv, fmt::format("{:.0f} x {:.0f} tokens", batch, tokens));
  add(e, "activations", server.activations, server.activations_how);
  add_saved_activations(server, e, job);
  add(e, "context", server.context, "CUDA context");
}

}  // namespace

double kv_bytes_per_token(const ModelShape& shape, double element_bytes, int64_t tensor_parallel) {
  return element_count(shape, tensor_parallel) * element_bytes;
}

int64_t kv_tokens_in(double bytes, const ModelShape& shape, double element_bytes, int64_t block,
                     int64_t tensor_parallel) {
  const double per_block =
      kv_bytes_per_token(shape, element_bytes, tensor_parallel) * static_cast<double>(std::max<int64_t>(1, block));
  if (!(per_block > 0) || !(bytes > 0)) return 0;
  return whole_bytes(std::floor(bytes / per_block) * static_cast<double>(std::max<int64_t>(1, block)));
}

Estimate estimate_serving(const Job& job, const ModelShape& shape, const std::optional<Gpu>& gpu,
                          const Software& software) {
  Estimate e;
  Server server{job, shape, gpu, e.assumptions};
  server.context = context_bytes(gpu, software);
  server.widths();
  e.peak_phase = "serve";
  if (job.task == Task::serve && (job.system == System::vllm || job.system == System::sglang))
    paged_server(server, e, job);
  else if (job.system == System::llama_server)
    llama_server(server, e, job);
  else
    plain_inference(server, e, job);
  finish_terms(e);
  const double likely = static_cast<double>(e.likely_bytes), unsure = shape.guessed ? 0.2 : 0.05;
  e.low_bytes = whole_bytes(likely * (1 - unsure));
  e.high_bytes = whole_bytes(likely * (1 + unsure) + 256 * kMi);
  e.allocated_bytes = e.reserved_bytes = whole_bytes(std::max(0.0, likely - server.context));
  const double host =
      4 * kGi + static_cast<double>(job.serving.swap_bytes.value_or(0) + job.serving.cpu_offload_bytes.value_or(0));
  e.host_low_bytes = whole_bytes(host * 0.5);
  e.host_likely_bytes = whole_bytes(host);
  e.host_high_bytes = whole_bytes(host + shape.parameters * server.width);
  return e;
}

}  // namespace headroom::doctor
