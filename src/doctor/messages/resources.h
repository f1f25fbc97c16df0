// What schedulers, monitors and servers print near an error: the memory that a job asked for and used, the processes on
// each GPU, and what a server measured while starting.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace headroom::doctor {

struct GpuProcess {
  int64_t pid = 0;
  std::string name;
  int64_t bytes = 0;
};

// From nvidia-smi; the last of several readings.
struct GpuUsage {
  int index = 0;
  std::string name;
  std::optional<int64_t> used_bytes, total_bytes;
  std::vector<GpuProcess> processes;  // at most 64
};

// From sacct, seff, scontrol and "#SBATCH" lines. Slurm's units are powers of 1024.
struct JobResources {
  std::string job_id, state;
  std::optional<int64_t> memory_requested_bytes;          // per node
  std::optional<int64_t> memory_requested_per_cpu_bytes;  // if the job asked per CPU
  std::optional<int64_t> memory_used_bytes;               // the largest MaxRSS of its steps
  std::optional<int64_t> cpus, gpus, nodes;
};

// From the start-up messages of vLLM and SGLang.
struct ServerFacts {
  std::optional<int64_t> weights_bytes, activation_peak_bytes, non_torch_bytes, graph_bytes, total_bytes;
  std::optional<int64_t> kv_cache_bytes, kv_cache_tokens, kv_blocks, max_model_len;
  std::optional<double> gpu_memory_utilization, max_concurrency;
};

struct Resources {
  JobResources job;
  std::vector<GpuUsage> gpus;  // by index, at most 64
  ServerFacts server;
};

// Feed it, in order, the clean lines of a log that contain one of words().
class ResourceReader {
 public:
  // `previous` is the clean line before (nvidia-smi writes a GPU's name above its memory).
  void line(std::string_view text, std::string_view previous);
  // True after a table's header: the following lines are needed whatever they contain.
  bool wants_more() const { return !columns_.empty(); }
  // The GPU whose memory the last call of line() read, else nullptr.
  const GpuUsage* updated_gpu() const;
  const Resources& resources() const { return resources_; }

  // Every line that line() understands contains one of these words.
  static const std::vector<std::string_view>& words();

 private:
  struct Column {
    std::string name;
    size_t start = 0, end = 0;  // character columns; numbers of columns when there is a separator
  };

  bool table_header(std::string_view text);
  void table_row(std::string_view text);
  bool usage_line(std::string_view text, std::string_view previous);
  bool process_line(std::string_view text);
  void table_value(const std::string& name, std::string_view value);
  GpuUsage* gpu(int index);

  Resources resources_;
  std::vector<Column> columns_;
  char separator_ = 0;  // 0: columns of fixed width
  int64_t rows_ = 0;
  std::optional<int> row_gpu_;
  std::optional<int> updated_;
};

}  // namespace headroom::doctor
