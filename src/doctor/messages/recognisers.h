// Recognisers of all kinds of out-of-memory messages: one table per family of systems, in one file each.
#pragma once

#include <vector>

#include "doctor/messages/reading.h"

namespace headroom::doctor {

void add_torch_recognisers(std::vector<Recogniser>& table);         // PyTorch's caching allocators: CUDA, HIP, XPU, NPU
void add_torch_other_recognisers(std::vector<Recogniser>& table);   // MPS, the CPU allocator, NumPy, data loaders
void add_cuda_library_recognisers(std::vector<Recogniser>& table);  // cuBLAS, cuDNN, NCCL, the CUDA driver
void add_tensorflow_recognisers(std::vector<Recogniser>& table);
void add_xla_recognisers(std::vector<Recogniser>& table);  // JAX on GPUs, XLA on TPUs
void add_vllm_recognisers(std::vector<Recogniser>& table);
void add_server_recognisers(std::vector<Recogniser>& table);   // SGLang, TGI, LMDeploy, TensorRT-LLM
void add_ggml_recognisers(std::vector<Recogniser>& table);     // llama.cpp, Ollama
void add_library_recognisers(std::vector<Recogniser>& table);  // bitsandbytes, MLX, ONNX Runtime, Paddle, CuPy
void add_host_recognisers(std::vector<Recogniser>& table);     // kernel, Slurm, Kubernetes, launchers

// All tables. When triggers start at the same byte, earlier rows are tried first.
std::vector<Recogniser> all_recognisers();

}  // namespace headroom::doctor
