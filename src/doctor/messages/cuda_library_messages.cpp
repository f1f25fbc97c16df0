// cuBLAS, cuDNN and NCCL, which report a full device as their own errors, and the plain CUDA driver and runtime.
#include "doctor/messages/recognisers.h"

namespace headroom::doctor {
namespace {

// "; GPU=0 ; hostname=..." of CNTK and ONNX Runtime
void gpu_field(Reading& r) {
  if (const auto index = r.after("gpu=", r.trigger(), 60)) r.device(*index);
}

// "CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`", "failed to create cublas handle: ...",
// "CUBLAS failure 3: CUBLAS_STATUS_ALLOC_FAILED ; GPU=0". On a full device, creating the handle can also fail with
// NOT_INITIALIZED.
bool cublas(Reading& r) {
  const size_t status = r.body();
  const bool alloc = r.at(status, "alloc_failed");
  if (!alloc && !r.at(status, "not_initialized")) return false;
  r.extend(status + (alloc ? 12 : 15));
  gpu_field(r);
  if (const auto call = r.after("whencalling`", status, 24)) r.after("`", *call, 80);
  if (!alloc) r.hint("disguised");
  r.identify("cublas", alloc ? "cublas_alloc" : "cublas_not_initialized");
  if (r.before(r.trigger(), "failedtocreatecublashandle:")) r.phase("init", "creating the cuBLAS handle");
  return true;
}

// "Could not create cudnn handle: CUDNN_STATUS_ALLOC_FAILED", "cuDNN failure 2: CUDNN_STATUS_ALLOC_FAILED ; GPU=0 ;
// ..."
bool cudnn(Reading& r) {
  const size_t status = r.body();
  const bool alloc = r.at(status, "alloc_failed"), start = r.at(status, "not_initialized");
  const bool handle = r.near_before(r.trigger(), "createcudnnhandle", 40);
  if (!alloc && !start && !(handle && r.at(status, "internal_error"))) return false;
  r.extend(status + (alloc ? 12 : 15));
  gpu_field(r);
  if (const auto call = r.after("(cudnn", status, 16)) r.after(")", *call, 60);
  if (const auto call = r.after("expr=", status, 120)) r.after(")", *call, 60);
  if (!alloc) r.hint("disguised");
  const auto text = r.text().view().substr(status, r.end() - status);
  if (text.find("forward") != std::string_view::npos) r.phase("forward", "a forward algorithm of cuDNN");
  if (text.find("backward") != std::string_view::npos) r.phase("backward", "a backward algorithm of cuDNN");
  r.identify("cudnn", alloc ? "cudnn_alloc" : "cudnn_disguised");
  return true;
}

// "Unable to find a valid cuDNN algorithm to run convolution", "FIND was unable to find an engine to execute this
// computation": the workspace of no algorithm fits.
bool cudnn_search(Reading& r) {
  r.hint("disguised");
  r.identify("cudnn", "cudnn_search");
  return true;
}

// "node:123:456 [0] enqueue.cc:1085 NCCL WARN Cuda failure 'out of memory'": the index in brackets is the device.
void nccl_device(Reading& r) {
  const size_t warn = r.trigger();
  const size_t start = warn > 60 ? warn - 60 : 0;
  const auto text = r.text().view().substr(start, warn - start);
  const size_t open = text.rfind('[');
  if (open == std::string_view::npos) return;
  const auto index = whole_number_at(r.text(), start + open + 1);
  if (!index || !r.at(index->end, "]")) return;
  r.device(start + open + 1);
  r.begin_at(start + open);
}

bool nccl_warn(Reading& r) {
  const size_t body = r.body();
  if (r.at(body, "cudafailure") && r.after("outofmemory", body, 24)) {
    r.identify("nccl", "nccl_warn");
    r.phase("comm", "NCCL");
  } else if (const auto extend = r.after("failedtoextend", body, 24)) {
    if (const auto to = r.after("to", *extend, 60)) r.amount(*to, kIec, kRequested);
    r.identify("nccl", "nccl_shm");
    r.phase("comm_init", "NCCL's shared memory");
    r.hint("shared_memory");
  } else if (const auto segment = r.after("/dev/shm/nccl-", body, 80)) {
    if (const auto size = r.after("(size", *segment, 24)) r.amount(*size, kIec | kBare, kRequested);
    r.identify("nccl", "nccl_shm");
    r.phase("comm_init", "NCCL's shared memory");
    r.hint("shared_memory");
  } else if (r.at(body, "calltoposix_fallocatefailed")) {
    r.after("nospaceleftondevice", body, 60);
    r.identify("nccl", "nccl_shm");
    r.phase("comm_init", "NCCL's shared memory");
    r.hint("shared_memory");
  } else if (r.at(body, "failedtocuda")) {
    const auto alloc = r.after("alloc", body, 24);
    if (!alloc) return false;
    r.amount(*alloc, kIec, kRequested);
    r.identify("nccl", "nccl_alloc");
    r.phase("comm_init", "NCCL's buffers");
  } else {
    return false;
  }
  nccl_device(r);
  return true;
}

// "Last error: Cuda failure 2 'out of memory'" in PyTorch's report of an NCCL error
bool nccl_last_error(Reading& r) {
  if (!r.follows("outofmemory", r.trigger(), 20)) return false;
  r.after("outofmemory", r.trigger(), 20);
  r.identify("nccl", "nccl_error");
  r.phase("comm", "NCCL");
  return true;
}

// "Error while creating shared memory segment /dev/shm/nccl-abc (size 9637888)"
bool nccl_segment(Reading& r) {
  const auto name = r.after("/dev/shm/nccl-", r.trigger(), 30);
  if (!name) return false;
  if (const auto size = r.after("(size", *name, 24)) r.amount(*size, kIec | kBare, kRequested);
  r.identify("nccl", "nccl_shm");
  r.phase("comm_init", "NCCL's shared memory");
  r.hint("shared_memory");
  nccl_device(r);
  return true;
}

// "cudaErrorMemoryAllocation", "CUDA_ERROR_OUT_OF_MEMORY", "cudaMalloc failed: out of memory",
// "CUDA failure 2: out of memory ; GPU=0 ; hostname=...", Caffe's "Check failed: error == cudaSuccess (2 vs. 0)  out of
// memory"
bool bare_cuda(Reading& r) {
  gpu_field(r);
  r.identify("cuda", "cuda_driver");
  return true;
}
bool bare_cuda_words(Reading& r) {
  if (!r.after("outofmemory", r.trigger(), 60)) return false;
  gpu_field(r);
  const auto text = r.text().view().substr(r.trigger(), 400);
  r.identify(text.find("onnxruntime") != std::string_view::npos ? "onnxruntime" : "cuda", "cuda_failure");
  return true;
}

}  // namespace

void add_cuda_library_recognisers(std::vector<Recogniser>& table) {
  table.push_back({"cublas", "cublas_status_", cublas});
  table.push_back({"cudnn", "cudnn_status_", cudnn});
  table.push_back({"cudnn_search", "unabletofindavalidcudnnalgorithm", cudnn_search});
  table.push_back({"cudnn_search", "wasunabletofindanengine", cudnn_search});
  table.push_back({"nccl_warn", "ncclwarn", nccl_warn});
  table.push_back({"nccl_error", "lasterror:cudafailure", nccl_last_error});
  table.push_back({"nccl_segment", "sharedmemorysegment/dev/shm/nccl", nccl_segment});
  table.push_back({"cuda_failure", "cudafailure2:outofmemory", bare_cuda_words});
  table.push_back({"cuda_malloc", "cudamallocfailed:outofmemory", bare_cuda_words});
  table.push_back({"cuda_malloc", "cudaruntime(outofmemory)", bare_cuda_words});
  table.push_back({"cuda_driver", "cudaerrormemoryallocation", bare_cuda});
  table.push_back({"cuda_driver", "cuda_error_out_of_memory", bare_cuda});
  table.push_back({"cuda_check", "cudasuccess(2vs.0)outofmemory", bare_cuda});
  table.push_back({"cuda_ctranslate2", "cudafailedwitherroroutofmemory", bare_cuda});
}

}  // namespace headroom::doctor
