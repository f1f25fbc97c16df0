// Host memory of jobs that have no loader: merges in a notebook, tasks of MPI, models in files of llama.cpp.
#include <fmt/format.h>

#include "doctor/remedies/facts.h"
#include "doctor/remedies/situations/conditions.h"
#include "doctor/remedies/situations/situation.h"

namespace headroom::doctor {
namespace {

using enum Sign::In;

// An adapter is merged into its base for a save, by Unsloth or PEFT.
bool merges_on_the_host(const CaseView& view) {
  constexpr std::string_view kDivides = "fsdp|deepspeed|zero3|zero-3|zero 3|stage 3|stage3|megatron";
  return host_ran_out(view) && !view.has_job() && view.log_says(kDivides).empty();
}
Evidence merged_for_a_save(const CaseView& view) {
  const std::string_view merges = view.log_says(
      "merging weights|merge weights|merging the|merge_and_unload|save_pretrained_merged|push_to_hub_merged|"
      "save_pretrained_gguf|push_to_hub_gguf|merged_16bit|merging 4bit|merging lora|merge lora|merge the lora|合并权重|"
      "合并lora|合并模型|マージ");
  if (merges.empty()) return {};
  return {0.91, fmt::format("`{}` in the log", merges)};
}
bool merges_by_unsloth(const CaseView& view) { return merges_on_the_host(view) && !view.log_says("unsloth").empty(); }
bool merges_by_peft(const CaseView& view) { return merges_on_the_host(view) && view.log_says("unsloth").empty(); }

// Tasks of a batch system, and nothing of a training or a loader.
bool of_tasks(const CaseView& view) {
  constexpr std::string_view kLearns =
      "train|epoch|torch|tensorflow|keras|python|dataloader|worker|gpu|cuda|deepspeed|model.fit|jupyter|训练|学習";
  return host_ran_out(view) && !view.has_job() && view.log_says(kLearns).empty();
}

// Processes of the program's own, and no loader.
bool of_processes(const CaseView& view) {
  return host_ran_out(view) && !view.has_job() && view.reinforcement_library().empty() &&
         view.log_says("dataloader|num_workers|num_proc|torch|yolo|deepspeed|cc1plus|nvcc").empty();
}

// A file of llama.cpp, whatever program reads it; pipelines of images have such files too.
bool reads_a_gguf(const CaseView& view) {
  constexpr std::string_view kOthers =
      "comfyui|unet|vae$|flux|sdxl|train|finetun|fine-tun|unsloth|convert|llama-quantize|ollama|vllm|sglang";
  const bool known = view.job().system == System::llama_server && view.pool() == Pool::device;
  return view.pool() != Pool::shared_memory && !view.has_job() && !known && view.log_says(kOthers).empty() &&
         !speaks_of_diffusion(view);
}
Evidence context_of_a_gguf(const CaseView& view) {
  constexpr std::string_view kFiles =
      "gguf|ggml|llamafile|q2_k|q3_k|q4_k|q5_k|q6_k|q8_0|q4_0|q4_1|q2k|q3k|q4k|q5k|q6k|koboldcpp|lm studio|lmstudio|"
      "gpt4all|jan.ai|llama.cpp|llama-cpp|wasi-nn|llamaedge";
  constexpr std::string_view kContext = "context|ctx|tokens|上下文|コンテキスト";
  const std::string_view file = view.log_says(kFiles), context = view.log_says(kContext);
  if (file.empty() || context.empty()) return {};
  return {host_ran_out(view) ? 0.89 : 0.79, fmt::format("`{}` and `{}` in the log", file, context)};
}

constexpr Situation kSituations[] = {
    {"adapter_merged_in_host_memory_by_unsloth",
     "the save merges the adapter into the base in 16 bits: 2 GB of host memory per billion parameters, which a free "
     "notebook does not have",
     merges_by_unsloth,
     {},
     {{"save-adapter", "the adapter alone: model.save_pretrained(folder), merged later on a machine with more RAM"},
      {"host-memory",
       "more host memory (RAM): a runtime with high RAM (paid Colab, Kaggle), at least 2.5 GB per billion parameters"},
      {"sharded-save",
       "maximum_memory_usage=0.5 in the call that saves: what finds no room goes to the disk",
       {},
       System::unknown,
       "maximum_memory_usage"}},
     merged_for_a_save},
    {"adapter_merged_in_host_memory",
     "base and adapter are merged whole in host memory, twice while the result is written",
     merges_by_peft,
     {},
     {{"host-memory",
       "more host memory (RAM), or swap as large as the model: 2 GB per billion parameters in 16 bits, twice"},
      {"lean-load",
       "from_pretrained(..., torch_dtype=torch.bfloat16, low_cpu_mem_usage=True), not 32 bits; "
       "save_pretrained(max_shard_size=\"2GB\")"},
      {"save-adapter", "no merge: the base and its adapter loaded together (PeftModel.from_pretrained)"}},
     merged_for_a_save},
    {"tasks_of_a_batch_system",
     "the tasks of a node share its memory with one another, and with other jobs unless the node is the job's alone",
     of_tasks,
     {{log, 0.86, "srun: error|mpirun|mpiexec|aprun|jsrun|--ntasks|mpi rank|mpi task|mpi process"}},
     {{"host-memory",
       "#SBATCH --exclusive and --mem=0: all memory of the node (or --mem=<more>G; `sacct -j JOB -o MaxRSS,ReqMem`)"},
      {"fewer-workers", "fewer tasks on each node: --ntasks-per-node <half>, on twice as many nodes"},
      {"lean-load", "smaller parts per task: a finer decomposition, fewer members or fields in memory at once"}}},
    {"processes_of_the_program",
     "every process has a copy of what it is given, and of what it imports: their number multiplies the need",
     of_processes,
     {{log, 0.86,
       "multiprocessing|joblib|n_jobs|pool(|processpool|process pool|concurrent.futures|dask|pyspark|spark executor|"
       "mp.pool|starmap|parallel processes|worker processes|多进程|マルチプロセス"}},
     {{"fewer-workers", "fewer processes at once: n_jobs=2, Pool(2, maxtasksperchild=1), and smaller tasks"},
      {"host-memory"},
      {"lean-load",
       "data that all read from one place: np.load(path, mmap_mode=\"r\"), shared memory, files by index"}}},
    {"context_of_a_gguf",
     "the file's weights are read whole, and beside them the cache grows with the context, which is the model's own "
     "unless it is set",
     reads_a_gguf,
     {},
     {{"max-model-len",
       "-c 2048 (--ctx-size; n_ctx= in Python; --contextsize in KoboldCpp; Context Length in LM Studio): what is "
       "needed"},
      {"kv-dtype", "--cache-type-k q8_0 --cache-type-v q8_0 --flash-attn on"},
      {"quantized-model", "a smaller file of the model: Q3_K_M, Q2_K, or fewer parameters"},
      {"gpu-layers", "more layers on a GPU where there is one: -ngl <layers> (host memory is freed)"}},
     context_of_a_gguf},
};

}  // namespace

std::span<const Situation> host_job_situations() { return kSituations; }

}  // namespace headroom::doctor
