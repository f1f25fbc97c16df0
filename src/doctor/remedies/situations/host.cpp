// Host memory: what else takes it, and what was moved there.
#include "doctor/remedies/situations/conditions.h"
#include "doctor/remedies/situations/situation.h"

namespace headroom::doctor {
namespace {

using enum Sign::In;

bool host_ran_out(const CaseView& view) { return view.pool() == Pool::host; }
bool shared_memory_ran_out(const CaseView& view) { return view.pool() == Pool::shared_memory; }
// Not for a full device: .wslconfig does not enlarge it.
bool host_or_pinned(const CaseView& view) {
  return host_ran_out(view) || !view.log_says("cudahostalloc|cudamallochost|pin_memory").empty();
}
bool any_memory(const CaseView& view) { return !view.foreign_framework(); }

constexpr Situation kSituations[] = {
    {"offload_fills_the_host",
     "the offload keeps weights, gradients and states of every rank in host memory: 16 to 18 bytes per parameter",
     host_ran_out,
     {{setup, 0.8, "offload_param|offload_optimizer|offload_optimizer_device|cpu_offload"},
      {log, 0.78, "offload|ds_config_zero3|zero3"}},
     {{"host-memory"}, {"no-offload"}, {"lean-load"}}},
    {"every_rank_loads_the_model",
     "each process reads the whole model into host memory before it is split",
     host_ran_out,
     {{log, 0.82, "loading checkpoint shards"}, {log, 0.72, "from_pretrained|sending process"}},
     {{"lean-load", "low_cpu_mem_usage=True, one process first; zero.Init or fsdp_cpu_ram_efficient_loading: true"},
      {"host-memory"},
      {"fewer-workers"}}},
    {"history_kept_on_the_host",
     "the program itself grows from step to step: losses with their graphs, outputs or samples in a list",
     host_ran_out,
     {{log, 0.84,
       "keep increasing|keeps increasing|keeps growing|keeps rising|memory leak|+= loss\n|+= output.loss\n"}},
     {{"detach-history", "total += loss.item(); lists of .detach().cpu().numpy(): no graph is kept"},
      {"fewer-workers", "DataLoader(..., num_workers=0): does it still grow? samples as arrays, not lists of objects"},
      {"host-memory"}}},
    {"data_set_in_memory",
     "the data set itself fills the host memory, and every loader process has a copy of its own",
     host_ran_out,
     {{log, 0.82,
       "unable to allocate|for an array with shape|read_csv|load_dataset|pickle.load|np.load|np.ndarray(|np.zeros(|"
       "np.empty(|np.asarray(|np.array(|np.concatenate|np.stack|np.vstack|hf.get("}},
     {{"lean-load",
       "not all at once: np.load(path, mmap_mode=\"r\"), np.memmap, h5py by slices, keep_in_memory=False, or fewer "
       "samples"},
      {"fewer-workers"},
      {"host-memory"}}},
    {"paging_file_behind_a_model",
     "Windows commits as much of the paging file as the model's file is large while it is read",
     any_memory,
     {{log, 0.95, "os error 1455"}},
     {{"more-swap",
       "System > Advanced > Performance > Virtual memory: a paging file of twice the model's size, or by the system"},
      {"smaller-model", "an fp8 or GGUF file of the model"},
      {"host-memory"}}},
    {"paging_file_too_small",
     "Windows gives every loader process its own copy of CUDA's libraries, and the paging file cannot back them",
     any_memory,
     {{log, 0.92, "winerror 1455|paging file is too small"}},
     {{"fewer-workers", "DataLoader(..., num_workers=0)"},
      {"more-swap", "System > Advanced > Performance > Virtual memory: a larger paging file on a drive with room"}}},
    {"wsl_takes_half",
     "WSL has half of the machine's memory unless .wslconfig says more, and less still of it can be pinned",
     host_or_pinned,
     {{log, 0.85, "microsoft-standard-wsl|wsl2|in wsl|on wsl|under wsl|wsl ubuntu"}},
     {{"host-memory", "%UserProfile%\\.wslconfig: [wsl2] memory=48GB, swap=64GB; then wsl --shutdown"},
      {"pageable-memory"},
      {"more-swap"}}},
    {"pinned_memory",
     "pinned host memory ran out: it cannot be swapped, and DeepSpeed and data loaders round it up",
     any_memory,
     {{log, 0.88, "cudahostalloc|cudamallochost|pin_memory_loop|_pin_memory|hostalloc|cuda_host_malloc"}},
     {{"pageable-memory", "pin_memory=False (DataLoader); \"pin_memory\": false in DeepSpeed's offload"},
      {"fewer-workers"}}},
    {"workers_share_the_host",
     "data-loader workers were killed: every one of them is a process with batches and a data set of its own",
     host_ran_out,
     {{log, 0.8, "dataloader worker (pid|dataloader worker exited"}},
     {{"host-memory"}, {"fewer-workers"}, {"pageable-memory"}}},
    {"batches_in_shared_memory",
     "data-loader workers pass their batches through /dev/shm, which a container makes small",
     shared_memory_ran_out,
     {{log, 0.85, "bus error|shared memory|/dev/shm|torch_"}},
     {{"shared-memory"}, {"fewer-workers"}, {"pageable-memory"}}},
};

}  // namespace

std::span<const Situation> host_situations() { return kSituations; }

}  // namespace headroom::doctor
