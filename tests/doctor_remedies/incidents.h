// Cases made by hand, and helpers to search a diagnosis.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "doctor/remedies/changes.h"
#include "doctor/remedies/remedy.h"

namespace headroom::doctor {

constexpr int64_t kMiB = int64_t{1} << 20, kGiB = int64_t{1} << 30;

inline int64_t gib(double value) { return static_cast<int64_t>(value * static_cast<double>(kGiB)); }

inline std::vector<System> all_systems() {
  return {System::hf_trainer,   System::trl,  System::accelerate,     System::deepspeed,
          System::litgpt,       System::oumi, System::axolotl,        System::llamafactory,
          System::torchtune,    System::neox, System::vllm,           System::sglang,
          System::llama_server, System::tgi,  System::pytorch_script, System::unknown};
}

// A training job with only a batch and a length.
inline Job training_job(System system, int64_t micro_batch = 8, int64_t sequence = 2048) {
  Job job;
  job.system = system;
  job.model = "meta-llama/Llama-3.2-1B";
  job.batch.micro = micro_batch;
  job.batch.accumulation = 1;
  job.batch.sequence = sequence;
  return job;
}

inline Job serving_job(System system, const std::string& model = "meta-llama/Llama-3.1-8B-Instruct") {
  Job job;
  job.system = system;
  job.task = Task::serve;
  job.model = model;
  return job;
}

// The job on a GPU, with the memory model's estimate.
inline Case case_of(const Job& job, const std::string& gpu) {
  Case incident;
  incident.job = job;
  incident.shape = find_model_shape(job.model);
  EXPECT_TRUE(incident.shape) << job.model;
  incident.gpu = find_gpu(gpu);
  EXPECT_TRUE(incident.gpu) << gpu;
  incident.capacity_bytes = incident.gpu->memory_bytes;
  incident.estimate = estimate(job, *incident.shape, incident.gpu);
  return incident;
}

// PyTorch's message since 2.1, in which the process holds 0.5 GiB more than it reserved.
inline Message cuda_message(double requested, double free, double allocated, double unallocated, double capacity) {
  Message message;
  message.framework = "pytorch-cuda";
  message.format = "torch2.2";
  message.text = "CUDA out of memory. Tried to allocate";
  message.requested_bytes = gib(requested);
  message.free_bytes = gib(free);
  message.allocated_bytes = gib(allocated);
  message.reserved_unallocated_bytes = gib(unallocated);
  message.reserved_bytes = gib(allocated + unallocated);
  message.capacity_bytes = gib(capacity);
  message.process_bytes = gib(capacity - free);
  return message;
}

inline const Remedy* remedy_of(const Diagnosis& diagnosis, const std::string& name) {
  for (const Remedy& remedy : diagnosis.remedies)
    if (remedy.name == name) return &remedy;
  return nullptr;
}

inline Remedy expect_remedy(const Diagnosis& diagnosis, const std::string& name) {
  const Remedy* remedy = remedy_of(diagnosis, name);
  EXPECT_NE(remedy, nullptr) << name << " is not offered";
  return remedy ? *remedy : Remedy{};
}

// Why a technique was refused; empty if it was not.
inline std::string refusal_of(const Diagnosis& diagnosis, const std::string& name) {
  for (const Refusal& refusal : diagnosis.refused)
    if (refusal.name == name) return refusal.why;
  return {};
}

inline const Cause* cause_of(const Diagnosis& diagnosis, const std::string& name) {
  for (const Cause& cause : diagnosis.causes)
    if (cause.name == name) return &cause;
  return nullptr;
}

inline std::string notes_of(const Diagnosis& diagnosis) {
  std::string all;
  for (const std::string& note : diagnosis.notes) all += note + "\n";
  return all;
}

inline std::string caveats_of(const Remedy& remedy) {
  std::string all;
  for (const std::string& caveat : remedy.caveats) all += caveat + "\n";
  return all;
}

inline bool in_set(const Diagnosis& diagnosis, const std::string& name) {
  return std::find(diagnosis.smallest_fitting_set.begin(), diagnosis.smallest_fitting_set.end(), name) !=
         diagnosis.smallest_fitting_set.end();
}

}  // namespace headroom::doctor
