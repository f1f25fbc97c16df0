// The purpose of an allocation, as far as its stack tells.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "doctor/snapshot/snapshot.h"

namespace headroom::doctor {

enum class MemoryClass : uint8_t {
  weights,           // loading, module constructors, Module.to
  optimizer_state,   // the first step: _init_group and the like
  optimizer_step,    // temporaries of a step
  activations,       // forward
  loss,              // of the logits
  recomputed,        // activation checkpointing's second forward
  gradients,         // backward: gradients of weights and activations, temporaries
  sharding,          // DDP, FSDP, DeepSpeed and other collectives
  inputs,            // data loading, batches moved to the device
  kv_cache,          // caches of keys and values
  workspaces,        // cuBLAS, cuDNN, graphs' pools
  other,             // a stack that shows none of these
  before_recording,  // alive before the first event, without a stack
  unknown,           // the stack was not recorded
};
inline constexpr size_t kMemoryClasses = 14;

// "weights", "optimizer state", "forward: activations", ...
const char* memory_class_title(MemoryClass kind);
// "weights", "optimizer_state", ...: for programs.
const char* memory_class_name(MemoryClass kind);

// The class of each stack of the table, from its frames: torch/optim/*.py, torch/nn/modules/module.py, names such as
// forward and backward. The empty stack counts as gradients if other stacks contain a forward pass (the backward thread
// has no Python frames), else as unknown.
std::vector<MemoryClass> classify_stacks(const StackTable& stacks);

}  // namespace headroom::doctor
