// Host memory: what else takes it, and what was moved there.
#include <fmt/format.h>

#include "doctor/remedies/cpu_alone.h"
#include "doctor/remedies/figures.h"
#include "doctor/remedies/program_words.h"
#include "doctor/remedies/situations/conditions.h"
#include "doctor/remedies/situations/situation.h"
#include "doctor/remedies/told_growth.h"

namespace headroom::doctor {
namespace {

using enum Sign::In;

bool device_ran_out(const CaseView& view) { return view.pool() == Pool::device; }
bool shared_memory_ran_out(const CaseView& view) { return view.pool() == Pool::shared_memory; }
// Not for a full device: .wslconfig does not enlarge it.
bool host_or_pinned(const CaseView& view) {
  return host_ran_out(view) || !view.log_says("cudahostalloc|cudamallochost|pin_memory").empty();
}
// "verl" alone is a part of "overlap", too: the library itself must be named.
bool host_without_rollouts(const CaseView& view) { return host_ran_out(view) && view.reinforcement_library().empty(); }
bool reinforced_on_host(const CaseView& view) {
  return host_ran_out(view) &&
         (!view.reinforcement_library().empty() || !view.setup_says("enable_sleep|adam_offload").empty());
}
bool training_on_host(const CaseView& view) { return host_ran_out(view) && view.training(); }
constexpr std::string_view kLoads =
    "loads the|every rank|each rank|every process|each process|loading checkpoint shards|loading model|loading "
    "pipeline|load the model|loading the model|from_pretrained|"
    "initializing|sending process|加载模型|加载权重|モデルの読み込み";
constexpr std::string_view kRanks =
    "sending process|killing subprocess|local_rank|torchrun|deepspeed|fsdp|accelerate launch";
// Every rank, or one process.
bool loading_on_host(const CaseView& view) { return host_ran_out(view) && !view.log_says(kLoads).empty(); }
bool loading_into_host(const CaseView& view) {
  // A server reads it in its own way, and a pod has no swap.
  constexpr std::string_view kElsewhere = "vllm|sglang|kubernetes|oomkilled|slurm|ollama";
  return host_ran_out(view) && view.log_says(kRanks).empty() && view.log_says(kElsewhere).empty();
}
// The program's own torch.load, where no library reads the weights.
bool reads_a_file(const CaseView& view) { return loading_into_host(view) && view.log_says("from_pretrained").empty(); }
bool reads_by_a_library(const CaseView& view) {
  return loading_into_host(view) && !(reads_a_file(view) && !view.log_says("torch.load(").empty());
}
// A server or a page for chats reads its model itself: it has options for that.
bool starts_a_server(const CaseView& view) {
  return loading_into_host(view) && view.log_says("train|epoch|stable diffusion|stable-diffusion|sd_models").empty();
}
// Windows refused to commit host memory.
Evidence commit_refused(const CaseView& view) {
  const Message* message = view.message();
  if (message && message->format == "cpu_win") return {0.86, "Windows' message: not enough memory"};
  return {};
}
// Host memory, and nothing of how it came to that.
Evidence host_alone(const CaseView& view) {
  if (!view.message() || view.has_job() || view.phase("load")) return {};
  return {0.7, "host memory, and no more than that"};
}
// The same on a machine with a screen, or in a notebook: below the first of the advice for host memory alone.
Evidence desktop_alone(const CaseView& view) {
  constexpr std::string_view kDesktop =
      "windows|laptop|macbook|my pc$|my computer|my mac$|colab|jupyter|notebook|pycharm|vscode|vs code|spyder|desktop|"
      "电脑|笔记本|パソコン|ノートpc";
  if (host_alone(view).weight == 0) return {};
  const std::string_view word = view.log_says(kDesktop);
  return word.empty() ? Evidence{} : Evidence{0.62, fmt::format("`{}` in the log", word)};
}
// Python's MemoryError, by a line of the program itself.
Evidence arrays_of_the_program(const CaseView& view) {
  constexpr std::string_view kOthers = "torch.load|from_pretrained|dataloader|worker";
  if (view.log_says("memoryerror").empty() || view.log_says("file \"").empty() || view.phase("load")) return {};
  if (!view.log_says(kOthers).empty()) return {};
  return {0.76, "Python's MemoryError in a line of the program"};
}
// By the figures of the log, or by its words.
Evidence grows_on_the_host(const CaseView& view) {
  if (view.incident().growth.kind == GrowthKind::leak) return {0.87, "the memory in the log rises from step to step"};
  const std::string_view told = view.story().growing;
  return told.empty() ? Evidence{} : Evidence{0.87, fmt::format("`{}` in the log", told)};
}
Evidence grows_with_the_validation(const CaseView& view) {
  constexpr std::string_view kValidation = "validat|evaluat|eval$|val_|验证|評価|検証";
  constexpr std::string_view kLoaders = "num_workers|dataloader|data loader|loader|workers";
  const std::string_view told = view.story().at(ToldStage::evaluation);
  if (!told.empty() && !view.log_says(kLoaders).empty())
    return {0.86, fmt::format("`{}`, where the log says that it failed, and loaders", told)};
  const std::string_view word = any_word(view.incident().log_text, kValidation);
  if (word.empty() || grows_on_the_host(view).weight == 0) return {};
  return {0.9, fmt::format("it grows, and `{}` in the log", word)};
}
Evidence later_epochs_on_the_host(const CaseView& view) {
  const std::string_view told = told_after_epochs(view.incident().log_text);
  if (told.empty() || only_first_steps(told)) return {};
  return {0.81, fmt::format("`{}` in the log", told)};
}
// Of a device's library it has the library's name in front.
Evidence memory_error_of_python(const CaseView& view) {
  constexpr std::string_view kOnALine = "\nmemoryerror\n|\nmemoryerror: unable to allocate|_arraymemoryerror";
  return view.log_says(kOnALine).empty() ? Evidence{} : Evidence{0.86, "`MemoryError` in the log"};
}
bool any_memory(const CaseView& view) { return !view.foreign_framework(); }

// The program computes on the CPU: what a device's message says of batch and input holds for host memory.
Evidence tensors_on_the_cpu(const CaseView& view) {
  if (!view.message() || view.message()->framework != "tensorflow") return {};
  if (const std::string_view cpu = view.log_says("device:cpu:|by allocator cpu"); !cpu.empty())
    return {0.85, "`" + std::string(cpu) + "` in the log"};
  return {};
}

// What ran out is host memory because there is no device.
bool trains_on_the_cpu(const CaseView& view) {
  return host_ran_out(view) && !view.has_job() && view.story().task != ToldTask::prediction;
}
bool predicts_on_the_cpu(const CaseView& view) {
  return host_ran_out(view) && !view.has_job() && view.story().task == ToldTask::prediction && speaks_of_images(view);
}
Evidence without_a_device(const CaseView& view) {
  const std::string_view told = cpu_alone(view.incident().log_text);
  return told.empty() ? Evidence{} : Evidence{0.78, fmt::format("`{}` in the log", told)};
}

bool evaluated_on_the_host(const CaseView& view) {
  return host_ran_out(view) && view.log_says("trainingarguments|trainer|compute_metrics|per_device_").empty();
}
Evidence told_evaluation_on_the_host(const CaseView& view) {
  const std::string_view word = view.story().at(ToldStage::evaluation);
  if (word.empty()) return {};
  return {0.84, fmt::format("`{}`, where the log says that it failed", word)};
}
bool host_of_tensorflow(const CaseView& view) {
  return host_ran_out(view) && named_framework(view.incident().log_text, view.incident().setup_text) == "tensorflow";
}
// One large tensor of a program on the CPU.
Evidence one_tensor_on_the_host(const CaseView& view) {
  constexpr int64_t kLarge = int64_t{1} << 30;
  const std::optional<int64_t>& asked = view.figures().requested;
  if (!view.message() || !view.message()->framework.starts_with("pytorch-cpu") || view.phase("load")) return {};
  if (!asked || *asked < kLarge) return {};
  return {0.78, fmt::format("one request of {}", figure(*asked))};
}
bool shared_by_nccl(const CaseView& view) {
  return shared_memory_ran_out(view) && view.message() && view.message()->framework == "nccl";
}

constexpr std::string_view kScenes = "nerfstudio|ns-train|nerfacto|splatfacto";
constexpr std::string_view kDelays = "more host memory (RAM), or swap: while it grows, they only delay the end";
constexpr std::string_view kContainer =
    "docker|container|kubernetes|kubectl|podman|singularity|/dev/shm|shm-size|ipc=host|容器";
constexpr std::string_view kSharedMemory =
    "df -h /dev/shm: if it is full, a larger one (mount -o remount,size=16g /dev/shm; in a container docker run "
    "--shm-size=16g)";

constexpr Situation kSituations[] = {
    {"images_of_a_scene",
     "all photographs of a scene are read and kept in host memory before the first step",
     host_ran_out,
     {{either, 0.93, kScenes}},
     {{"find-sample",
       "fewer photographs: every second or tenth of them; nerfacto: --pipeline.datamanager.train-num-images-to-sample-"
       "from 200 --pipeline.datamanager.train-num-times-to-repeat-images 500"},
      {"input-size", "smaller photographs: nerfstudio-data --downscale-factor 4"},
      {"host-memory"}}},
    {"tensors_on_the_cpu",
     "the program computes on the CPU, so its tensors are in host memory: batch and input size decide",
     host_ran_out,
     {},
     {{"micro-batch", "model.fit(..., batch_size=<half>) or dataset.batch(<half>)"},
      {"input-size", "smaller images or crops: tf.image.resize, a smaller crop_size; shorter sequences"},
      {"host-memory"}},
     tensors_on_the_cpu},
    {"computes_on_the_cpu",
     "the program computes on the CPU: weights, states and what the layers keep are all in host memory",
     trains_on_the_cpu,
     {},
     {{"micro-batch", "a smaller batch_size: half of it (in training with twice the accumulation)"},
      {"input-size"},
      {"host-memory"}},
     without_a_device},
    {"predicts_on_the_cpu",
     "the program computes on the CPU: a whole image, and what every layer makes of it, are in host memory at once",
     predicts_on_the_cpu,
     {},
     {{"input-size", "the image in overlapping tiles, one at a time, and the results put together; or a smaller image"},
      {"micro-batch", "one image at a time: batch_size=1"},
      {"host-memory"}},
     without_a_device},
    {"one_tensor_on_the_host",
     "one tensor alone is that large: a whole input, its attention scores, or what the layers make of it, on the CPU",
     host_ran_out,
     {},
     {{"input-size"}, {"micro-batch", "fewer rows or images at a time: half of the batch"}, {"host-memory"}},
     one_tensor_on_the_host},
    {"offload_fills_the_host",
     "the offload keeps weights, gradients and states of every rank in host memory: 16 to 18 bytes per parameter",
     host_ran_out,
     {{setup, 0.8, "offload_param|offload_optimizer|offload_optimizer_device|cpu_offload"},
      {log, 0.78, "offload|ds_config_zero3|zero3|zero-3|zero 3"}},
     {{"host-memory"}, {"no-offload"}, {"lean-load"}}},
    {"offload_of_a_reinforcement",
     "actor, reference and their states are moved to host memory while the rollout runs, and the server's weights with "
     "them",
     reinforced_on_host,
     {{setup, 0.9, "enable_sleep|param_offload=true|optimizer_offload=true|adam_offload|offload_params: true"},
      {either, 0.82, "verl|openrlhf|easyr1|actor_rollout_ref"}},
     {{"no-offload",
       "without --vllm_enable_sleep, --adam_offload (OpenRLHF); param_offload=False, optimizer_offload=False (verl; "
       "EasyR1: worker.actor.offload.offload_params=false)"},
      {"host-memory"},
      {"fewer-workers", "data.dataloader_num_workers=2; fewer actors per node (Ray counts them all)"}}},
    {"model_read_into_host_memory",
     "the model is read into host memory before it goes to the device: whole, in 32 bits where no type is told, and "
     "twice where its file is one",
     reads_by_a_library,
     {{log, 0.83,
       "pipeline(|bit loading|loading of a|loading checkpoint shards|loading model|loading pipeline|loading "
       "weights|load the "
       "model|loading the model|"
       "load model|from_pretrained|.ckpt|.safetensors|加载模型|加载权重|载入模型|モデルの読み込み|モデルをロード|"
       "モデルのロード|モデルを読み込"}},
     {{"more-swap", "swap as large as the model's file (Windows: a larger paging file): it is read once"},
      {"lean-load",
       "from_pretrained(..., torch_dtype=torch.float16, low_cpu_mem_usage=True, device_map=\"auto\"); a checkpoint in "
       "shards (max_shard_size=\"2GB\")"},
      {"host-memory"},
      {"quantized-model", "a version in 4 or 8 bits (GGUF, AWQ, GPTQ): its file is a quarter"}}},
    {"file_read_by_torch_load",
     "torch.load reads a whole file into host memory first, unless it is told where its tensors go",
     reads_a_file,
     {{log, 0.86, "torch.load("}},
     {{"map-location",
       "torch.load(file, map_location=\"cuda\") where the device has room, or mmap=True (torch >= 2.1); a .safetensors "
       "file is read piece by piece"},
      {"more-swap", "swap as large as the file (Windows: a larger paging file): it is read once"},
      {"host-memory"},
      {"smaller-model", "a smaller file: in 16 bits, without the optimizer's states (pruned)"}}},
    {"model_of_a_text_server",
     "the server reads the whole model into host memory before it goes to the device",
     starts_a_server,
     {{log, 0.84, "textgen|text-generation-webui|oobabooga|python server.py|koboldai|kobold|gpt4all|chat_server"}},
     {{"host-memory"},
      {"lean-load",
       "read piece by piece: a .safetensors version in shards, low_cpu_mem_usage (text-generation-webui: "
       "--auto-devices, "
       "--load-in-8bit)"},
      {"more-swap", "swap as large as the model's file (WSL: swap= in .wslconfig): it is read once"},
      {"quantized-model", "a version in 4 or 8 bits (GGUF, AWQ, GPTQ): its file is a quarter"}}},
    {"every_rank_loads_the_model",
     "each process reads the whole model into host memory before it is split",
     loading_on_host,
     {{log, 0.83, "sending process|killing subprocess|local_rank|torchrun|deepspeed|fsdp|accelerate launch"}},
     {{"lean-load", "low_cpu_mem_usage=True, one process first; zero.Init or fsdp_cpu_ram_efficient_loading: true"},
      {"host-memory"},
      {"fewer-workers"}}},
    {"history_kept_on_the_host",
     "it grows from step to step, by the log: losses with their graphs, results or samples are kept in lists or "
     "caches, "
     "or the loader's workers copy the data set's Python objects as they read them",
     host_without_rollouts,
     {{log, 0.84,
       "keep increasing|keeps increasing|keeps growing|keeps rising|memory leak|+= loss\n|+= output.loss\n"}},
     {{"fewer-workers",
       "DataLoader(..., num_workers=0): does it still grow? If not, its workers copy: samples as arrays (NumPy, "
       "Arrow), not lists of objects"},
      {"detach-history",
       "nothing kept from step to step: loss.item(), results reduced or lists emptied, figures closed; no samples kept "
       "by the data set (a "
       "cache, memoise=True)"},
      {"other-version",
       "another release of the framework or the library, if nothing is kept: some leaked host memory from step to "
       "step",
       {},
       System::unknown,
       "webui|web ui|comfyui|checkpoints"},
      {"host-memory", kDelays}},
     grows_on_the_host},
    {"results_of_the_evaluation",
     "what the evaluation collects of every input stays in host memory until its end, beside the workers of its loader",
     evaluated_on_the_host,
     {},
     {{"detach-history",
       "results reduced or written batch by batch: masks as run lengths, classes instead of scores, lists emptied"},
      {"host-memory", "more host memory (RAM), or the evaluation over several processes: --num-gpus 4 (torchrun)"},
      {"fewer-workers", "fewer workers in the validation's loader: num_workers=0"}},
     told_evaluation_on_the_host},
    {"workers_of_nnunet",
     "nnU-Net augments in many processes, each with its own copy of what it loads: one was ended for lack of host "
     "memory",
     host_ran_out,
     {{log, 0.9, "background workers are no longer alive"}},
     {{"fewer-workers", "export nnUNet_n_proc_DA=4 (fewer augmenting processes; 12 unless stated)"},
      {"host-memory"},
      {"more-swap"}}},
    {"growth_under_tensorflow",
     "it grows from call to call, by the log: predict() and fit() in a loop make new functions and data sets each "
     "time, "
     "and what is listed stays",
     host_of_tensorflow,
     {},
     {{"detach-history",
       "in a loop model(x, training=False) or predict_on_batch(x); nothing in lists, gc.collect() now and then"},
      {"lean-load", "one data set (tf.data) for all of it, instead of one per call; tf.keras.backend.clear_session()"},
      {"host-memory", kDelays}},
     grows_on_the_host},
    {"workers_of_the_validation",
     "the validation's loader has workers of its own beside the training's, in every process: each copies the data "
     "set's "
     "Python objects as it reads them",
     host_ran_out,
     {},
     {{"fewer-workers",
       "fewer workers in each process (num_workers=2), none in the validation's loader (num_workers=0), "
       "persistent_workers=False"},
      {"lean-load", "samples as arrays (NumPy, Arrow, LMDB), not lists or dicts of objects; no cache of decoded ones"},
      {"detach-history", "results of the validation reduced batch by batch, lists emptied at its end"}},
     grows_with_the_validation},
    {"host_full_after_whole_epochs",
     "whole epochs went well, by the post: something is kept from one to the next, or the validation between them, "
     "with "
     "workers and results of its own, wants more",
     host_ran_out,
     {},
     {{"fewer-workers",
       "DataLoader(..., num_workers=0), for the validation too: workers copy the data set's objects page by page"},
      {"detach-history",
       "nothing kept from epoch to epoch: loss.item(), results reduced or emptied, no caches, figures closed"},
      {"host-memory", kDelays}},
     later_epochs_on_the_host},
    {"data_set_in_memory",
     "the data set itself fills the host memory, and every loader process has a copy of its own",
     host_ran_out,
     {{log, 0.82,
       "unable to allocate|for an array with shape|read_csv|pandas|csv of|csv file|large csv|big csv|parquet file|hdf5 "
       "file|"
       "npy file|load_dataset|pickle.load|np.load|np.ndarray(|np.zeros(|"
       "np.empty(|np.asarray(|np.array(|np.concatenate|np.stack|np.vstack|hf.get(|whole dataset|entire dataset|"
       "whole data set|all the data|load everything|loads everything|into ram|into memory|dataset into|all images|"
       "all the images|一次性加载|一次性读|全部读入|全部加载|读入内存|加载到内存|加载数据|读取数据|一括ロード|一括で読|"
       "すべて読み込|全て読み込|全データ|numpy配列|画像データ"}},
     {{"lean-load",
       "not all at once: batches read from disk (a Dataset by index, tf.data, a generator), np.load(path, "
       "mmap_mode=\"r\"), h5py by slices, read_csv(chunksize=...); or a part of the data set"},
      {"fewer-workers"},
      {"host-memory"}}},
    {"arrays_of_the_program",
     "the program's own line wants an array that host memory has no room for: an index by a list copies what it takes",
     host_ran_out,
     {},
     {{"lean-load",
       "fewer samples, patches or images at once; arrays on disk (np.memmap, np.load(path, mmap_mode=\"r\")), a "
       "smaller "
       "dtype (float32 or uint8 instead of float64), slices instead of copies"},
      {"host-memory"},
      {"more-swap", "swap (Windows: a larger paging file): slow, and it does not end"}},
     arrays_of_the_program},
    {"host_memory_beside_the_device",
     "Python's MemoryError is about host memory, not the device's: both ran out, by the log",
     device_ran_out,
     {},
     {{"host-memory", "for the MemoryError: other programs closed, smaller or fewer arrays, more RAM or swap"}},
     memory_error_of_python},
    {"json_read_whole",
     "a file of JSON is parsed whole, piece by piece of the process, and its numbers take many times their size",
     host_ran_out,
     {{either, 0.9, "load_dataset(\"json\"|load_dataset('json'|load_dataset(path=\"json\""}},
     {{"lean-load",
       "the files converted to Parquet once, one after another (pandas, pyarrow), then load_dataset(\"parquet\", ...)"},
      {"fewer-workers", "fewer processes: num_proc=4"},
      {"host-memory"}}},
    {"texts_prepared_by_many",
     "every process that prepares the data holds a part of it, and the results of all are kept until they are written",
     host_ran_out,
     {{log, 0.86,
       "num_proc|preprocessing_num_workers|running "
       "tokenizer|tokenizing|tokenising|tokenization |tokenization,|tokenization.|dataset.map|datasets.map|"
       "load_dataset|pyarrow|.arrow|arrow table|tokenize "
       "|tokenize(|tokenize_function|tokenized|预处理数据|处理数据集|数据预处理|トークナイズ|前処理"}},
     {{"lean-load",
       "not all at once: load_dataset(..., streaming=True) (LLaMA-Factory: streaming: true), map(batched=True, "
       "writer_batch_size=100, keep_in_memory=False)"},
      {"fewer-workers", "fewer processes: num_proc=4 (preprocessing_num_workers, dataset_num_proc)"},
      {"host-memory"}}},
    {"images_kept_in_memory",
     "the loader keeps every decoded image in host memory",
     host_ran_out,
     {{log, 0.92,
       "caching images|caching the images|cache the images|cache the dataset|caches the dataset|caching the dataset|"
       "ram caching|caching in ram|cache in ram|cached in ram|disable caching|--cache |--cache\n|--cache`|--cache=ram"},
      {either, 0.9,
       "cache=true|--cache ram|cache='ram'|cache=\"ram\"|cache: true|cache: ram|--cache-images|cache_images"}},
     {{"lean-load",
       "without --cache (cache=False), also in the script that starts it: YOLO caches nothing unless it is told to; "
       "or cache=\"disk\""},
      {"fewer-workers"},
      {"host-memory"}}},
    {"copies_of_every_worker",
     "every loader process touches the objects of the data set, and so copies them page by page: lists of Python "
     "objects "
     "grow, arrays do not",
     host_ran_out,
     {{log, 0.84, "num_workers|dataloader workers|number of workers|worker processes|workers="}},
     {{"fewer-workers"},
      {"lean-load", "samples as arrays (NumPy, Arrow), not lists or dicts of objects; files read by index, by mmap"},
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
     {{log, 0.92, "winerror 1455|paging file is too small|页面文件太小|頁面檔太小|分页文件太小|小さすぎるため"}},
     {{"fewer-workers", "DataLoader(..., num_workers=0)"},
      {"more-swap", "System > Advanced > Performance > Virtual memory: a larger paging file on a drive with room"}}},
    {"commit_limit_on_the_host",
     "Windows backs what is allocated by memory and paging file together: both are full",
     host_ran_out,
     {{log, 0.84, "memory allocation failure|buy new ram|silently exit|silent exit|exits silently|静默退出|闪退"}},
     {{"more-swap",
       "System > Advanced > Performance > Virtual memory: a larger paging file on a drive with room (16 GB and more)"},
      {"host-memory"},
      {"lean-load", "less at a time: other programs closed, a smaller model or file (fp16, GGUF)"}},
     commit_refused},
    {"wsl_takes_half",
     "WSL has half of the machine's memory unless .wslconfig says more, and less still of it can be pinned",
     host_or_pinned,
     {{log, 0.85, "microsoft-standard-wsl|wsl2|in wsl|on wsl|under wsl|wsl ubuntu"}},
     {{"host-memory",
       "%UserProfile%\\.wslconfig: [wsl2] memory=<the machine's RAM less 2>GB, swap=32GB; then wsl --shutdown"},
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
    {"host_memory_full",
     "the process wants more host memory than there is, or than it may take",
     host_ran_out,
     {},
     {{"host-memory"},
      {"fewer-workers",
       "DataLoader(..., num_workers=0), a smaller batch_size: batches wait in host memory",
       {},
       System::unknown,
       "inference|webui|comfyui|raspberry|llama|whisper|推理|推論|generate"},
      {"more-swap", "swap (Windows: a larger paging file): slow, and it does not end"},
      {"lean-load",
       "less at once: data read piece by piece (mmap, streaming, generators), a model with low_cpu_mem_usage=True"}},
     host_alone},
    {"batches_of_keras",
     "batches lie in host memory, and without a GPU what the layers keep of them too",
     training_on_host,
     {{log, 0.69, "keras|model.fit|fit_generator"}},
     {{"micro-batch", "a smaller batch_size: half of it, then a quarter"}}},
    {"host_of_a_desktop",
     "on somebody's own machine the browser, the IDE and earlier sessions hold host memory too",
     host_ran_out,
     {},
     {{"end-other-processes",
       "free -g, or the task manager: other programs closed (browser, IDE, an earlier session), or a restart"}},
     desktop_alone},
    {"segments_of_nccl",
     "the processes of one machine exchange their gradients through segments of /dev/shm, which a container makes "
     "small",
     shared_by_nccl,
     {{log, 0.9, "nccl"}},
     {{"shared-memory",
       "docker run --shm-size=1g, or --ipc=host (Kubernetes: emptyDir {medium: Memory} on /dev/shm); without either "
       "NCCL_SHM_DISABLE=1 (slower)"}}},
    {"files_of_shared_memory",
     "every tensor that a worker hands over is an open file, and their number is limited, whatever room there is",
     shared_memory_ran_out,
     {{log, 0.9, "unable to open shared memory object|too many open files|received 0 items of ancdata"}},
     {{"shared-memory", "ulimit -n 65536; or torch.multiprocessing.set_sharing_strategy(\"file_system\")"},
      {"fewer-workers"}}},
    {"no_space_for_a_file",
     "/dev/shm or a disk is full: a container's /dev/shm has 64 MiB unless somebody says more",
     shared_memory_ran_out,
     {{log, 0.86, "errno 28|no space left on device"}},
     {{"shared-memory", "df -h: if /dev/shm is full, docker run --shm-size=16g (or --ipc=host)"},
      {"fewer-workers"},
      {"pageable-memory"}}},
    {"batches_in_shared_memory",
     "data-loader workers pass their batches through /dev/shm, which a container makes small",
     shared_memory_ran_out,
     {{log, 0.85, "bus error|shared memory|/dev/shm|torch_|共享内存|共有メモリ|shm"}},
     {{"shared-memory", kSharedMemory, {}, System::unknown, kContainer},
      {"shared-memory"},
      {"fewer-workers"},
      {"pageable-memory"}}},
};

}  // namespace

std::span<const Situation> host_situations() { return kSituations; }

}  // namespace headroom::doctor
