// What a person asks of doctor: files, a command line, and what they know of the model and the device.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "doctor/output/report.h"

namespace headroom::doctor {

// What headroom would need at least for a training of its own, in bytes: answered by the planner where it is linked.
struct HeadroomJob {
  std::string model;  // directory or config.json
  int64_t global_batch = 8, sequence = 512;
  std::string precision;  // 32-true, bf16-mixed or bf16-true
  int64_t lora_rank = 0;  // of adapters; 0: the whole model is trained
};
using MinimumPlanner = std::function<std::optional<int64_t>(const HeadroomJob&)>;

struct Request {
  std::vector<std::string> inputs;   // logs, configurations, output of the probe; "-" is standard input
  std::vector<std::string> configs;  // configurations for sure
  std::vector<std::string> command;  // a command line of another system, in words
  std::string model;                 // config.json, its directory, or a name; wins over the configuration's
  std::string parameters;            // "7B"
  std::string gpu;                   // a name, or a size of memory
  std::string torch;                 // PyTorch's version: "2.6"
  std::optional<int64_t> gpus, capacity_bytes, host_bytes, micro_batch, sequence;
  int64_t row = 1;  // of a JSONL of server commands
  bool which_gpu = false;
  MinimumPlanner minimum;
};

}  // namespace headroom::doctor
