// What a user asks doctor: files, a command line, and what is known of the model and the device.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "doctor/output/report.h"

namespace headroom::doctor {

// The least memory for training the job with headroom, in bytes. The planner answers it where it is linked.
struct HeadroomJob {
  std::string model;  // directory or config.json
  int64_t global_batch = 8, sequence = 512;
  std::string precision;  // 32-true, bf16-mixed or bf16-true
  int64_t lora_rank = 0;  // of the adapters; 0: the whole model is trained
};
using MinimumPlanner = std::function<std::optional<int64_t>(const HeadroomJob&)>;

struct Request {
  std::vector<std::string> inputs;   // logs, configurations, output of the probe; "-" is standard input
  std::vector<std::string> configs;  // files that must be configurations
  std::vector<std::string> command;  // a command line of another system, split into words
  std::string model;                 // config.json, its directory, or a name; overrides the configuration's
  std::string parameters;            // "7B"
  std::string gpu;                   // a name, or a memory size
  std::string torch;                 // PyTorch's version: "2.6"
  std::optional<int64_t> gpus, capacity_bytes, host_bytes, micro_batch, sequence;
  int64_t row = 1;  // row of a JSONL file of server commands
  bool which_gpu = false;
  MinimumPlanner minimum;
};

}  // namespace headroom::doctor
