// Other frameworks than PyTorch, known only from their messages, with remedies in their terms (T01, T04, T06, T27).
#include "doctor/remedies/rules.h"

namespace headroom::doctor {
namespace {

struct Word {
  std::string_view framework, technique, set, why;
};

constexpr Word kWords[] = {
    {"tensorflow", "micro-batch", "model.fit(..., batch_size=<half>) or dataset.batch(<half>)",
     "activations shrink with the batch"},
    {"tensorflow", "mixed-precision", "tf.keras.mixed_precision.set_global_policy(\"mixed_float16\")",
     "saved activations in 16 bits"},
    {"tensorflow", "checkpointing", "tf.recompute_grad(layer)", "activations are computed again instead of kept"},
    {"tensorflow", "input-size", "smaller images or crops: tf.image.resize, a smaller crop_size; shorter sequences",
     "activations grow with the area"},
    {"tensorflow", "own-allocator", "export TF_GPU_ALLOCATOR=cuda_malloc_async",
     "the default pool is one block that falls into pieces"},
    {"tensorflow", "grow-on-demand", "export TF_FORCE_GPU_ALLOW_GROWTH=true",
     "TensorFlow takes nearly the whole device at its start"},
    {"jax", "micro-batch", "a smaller batch; optax.MultiSteps adds up the gradients",
     "activations shrink with the batch"},
    {"jax", "checkpointing", "jax.checkpoint(layer), or nn.remat", "activations are computed again instead of kept"},
    {"jax", "own-allocator", "export XLA_PYTHON_CLIENT_ALLOCATOR=platform",
     "frees at once what the preallocated pool would keep in pieces; slow"},
    {"jax", "grow-on-demand", "export XLA_PYTHON_CLIENT_PREALLOCATE=false",
     "JAX takes 75 % of the device at its start: several processes do not fit"},
    {"xla-tpu", "micro-batch", "a smaller batch per core", "activations shrink with the batch"},
    {"xla-tpu", "checkpointing", "jax.checkpoint(layer), or nn.remat",
     "activations are computed again instead of kept"},
    {"onnxruntime", "micro-batch", "fewer rows per session.run()", "activations shrink with the batch"},
    {"onnxruntime", "own-allocator",
     "CUDAExecutionProvider with {\"arena_extend_strategy\": \"kSameAsRequested\", \"gpu_mem_limit\": ...}",
     "the arena otherwise grows by powers of two"},
    {"paddle", "micro-batch", "paddle.io.DataLoader(..., batch_size=<half>)", "activations shrink with the batch"},
    {"paddle", "mixed-precision", "with paddle.amp.auto_cast():", "saved activations in 16 bits"},
    {"paddle", "checkpointing", "paddle.distributed.fleet.utils.recompute(layer, x)",
     "activations are computed again instead of kept"},
    {"cupy", "empty-cache", "cupy.get_default_memory_pool().free_all_blocks()", "gives the pool's free blocks back"},
    {"cupy", "own-allocator", "cupy.cuda.set_allocator(cupy.cuda.MemoryAsyncPool().malloc)",
     "the driver's pool shares with others and joins its pieces"},
    {"mlx", "micro-batch", "a smaller batch; mlx_lm.lora --batch-size 1 --grad-checkpoint",
     "activations shrink with the batch"},
    {"mlx", "empty-cache", "mx.clear_cache(); mx.set_cache_limit(...)", "gives the cache's free buffers back"},
    {"lmdeploy", "gpu-memory-utilization", "--cache-max-entry-count 0.4",
     "the KV cache takes this share of what the weights leave (0.8 by default)"},
    {"lmdeploy", "max-model-len", "--session-len 8192", "the workspace and one request's cache grow with it"},
};

// Keras' own prediction, of a program that fits nothing.
bool only_predicts(const CaseView& s, const Word& word) {
  const bool batch = word.framework == "tensorflow" && word.technique == "micro-batch";
  return batch && !s.log_says("model.predict(|.predict(").empty() &&
         s.log_says(".fit(|fit_generator|train_on_batch|train_step|training|epoch").empty();
}

void words(const CaseView& s, Findings& findings) {
  if (!s.foreign_framework()) return;
  for (const Word& word : kWords) {
    if (word.framework != s.framework()) continue;
    Remedy remedy = make_remedy(s, word.technique, {}, {}, std::string(word.why));
    remedy.set = only_predicts(s, word) ? "model.predict(..., batch_size=1), fewer inputs at a time" : word.set;
    remedy.settings.clear();
    remedy.available = true;
    remedy.needs.clear();
    findings.offer(std::move(remedy));
  }
}

constexpr Rule kRules[] = {words};

}  // namespace

std::span<const Rule> framework_rules() { return kRules; }

}  // namespace headroom::doctor
