// llama.cpp and Ollama. One failure prints several lines: the backend's, with MiB to two digits, then the caller's,
// with exact bytes and the buffer's name (CUDA0, Vulkan0, ...). Together they are one message.
#include <array>
#include <cctype>
#include <cstdlib>

#include "doctor/messages/recognisers.h"

namespace headroom::doctor {
namespace {

struct Marker {
  std::string_view words;
  std::string_view phase;
};
// The purpose of the failed buffer, by the lines around it.
constexpr std::array<Marker, 9> kPurposes = {{{"gallocr", "compute_buffer"},
                                              {"graph_reserve", "compute_buffer"},
                                              {"computebuffer", "compute_buffer"},
                                              {"computeppbuffer", "compute_buffer"},
                                              {"exceedsdevicebuffersizelimit", "compute_buffer"},
                                              {"kvcache", "serve_init"},
                                              {"kv_cache", "serve_init"},
                                              {"alloc_tensor_range", "load"},
                                              {"loadingmodel", "load"}}};

// "CUDA0", "Vulkan1", "ROCm0", "SYCL0" before "buffer".
void device_of_buffer(Reading& r, size_t name) {
  size_t at = name;
  while (at < r.size() && std::isalpha(static_cast<unsigned char>(r.text()[at])) != 0 && at - name < 12) ++at;
  const auto index = whole_number_at(r.text(), at);
  if (at == name || !index || (!r.at(index->end, "buffer") && !r.at(index->end, "_"))) return;
  const auto word = r.text().view().substr(name, at - name);
  if (word != "cpu") r.device(at);
}

// Reads further lines of the same failure, and takes the exact size if one of them has it.
void caller_lines(Reading& r) {
  constexpr std::string_view kBuffer = "bufferofsize";
  for (int line = 0; line < 4; ++line) {
    const auto failed = r.after("failedtoallocate", r.end(), 60);
    if (!failed) break;
    device_of_buffer(r, *failed);
    const auto size = r.after(kBuffer, *failed, 40);
    if (!size) continue;
    if (const auto exact = quantity_at(r.text(), *size, kBare | kIec)) {
      const auto known = r.message.requested_bytes;
      // The exact size of the same request. For a different request (a retry of another size) the first one is kept.
      if (!known || std::abs(*known - exact->bytes) <= 2 * 10486) {
        r.message.requested_bytes.reset();
        r.message.figures.clear();
        r.amount(*size, kBare | kIec, kRequested);
      }
    }
  }
}

void purpose(Reading& r) {
  const size_t from = r.begin() > 60 ? r.begin() - 60 : 0;
  const auto around = r.text().view().substr(from, std::min(r.end() + 200, r.size()) - from);
  for (const Marker& marker : kPurposes) {
    const size_t found = around.find(marker.words);
    if (found == std::string_view::npos) continue;
    if (from + found + marker.words.size() > r.end()) r.extend(from + found + marker.words.size());
    return r.phase(marker.phase, marker.words);
  }
}

void finish(Reading& r, std::string_view format) {
  caller_lines(r);
  purpose(r);
  r.identify("llama.cpp", format);
}

// "ggml_backend_cuda_buffer_type_alloc_buffer: allocating 279356.51 MiB on device 0: cudaMalloc failed: out of memory"
bool backend_buffer(Reading& r) {
  if (const auto allocating = r.after("allocating", r.body(), 12)) {
    const auto end = r.amount(*allocating, kIec, kRequested);
    if (end && r.at(*end, "ondevice")) r.device(*end + 8);
    r.after("outofmemory", end ? *end : *allocating, 60);
  } else if (const auto size = r.after("size=", r.body(), 60)) {  // Metal
    r.amount(*size, kIec | kBare, kRequested);
  } else if (const auto other = r.after("failedtoallocatebufferofsize", r.body(), 20)) {
    r.amount(*other, kIec | kBare, kRequested);
  } else if (const auto sycl = r.after("allocate", r.body(), 30)) {
    r.amount(*sycl, kIec, kRequested);
  }
  const auto name = r.text().view().substr(r.trigger(), 24);
  finish(r, name.find("cuda") != std::string_view::npos ? "ggml_cuda" : "ggml_backend");
  return true;
}

// "ggml_gallocr_reserve_n: failed to allocate CUDA0 buffer of size 292926534144" when the first line is missing
bool caller(Reading& r) {
  if (!r.follows("failedtoallocate", r.body(), 40)) return false;
  finish(r, "ggml_buffer");
  return true;
}

// "ggml_vulkan: Device memory allocation of size 118497280 failed.", "ggml_vulkan: Requested buffer size exceeds device
// buffer size limit: ErrorOutOfDeviceMemory"
bool vulkan(Reading& r) {
  if (const auto size = r.after("memoryallocationofsize", r.body(), 12)) {
    r.amount(*size, kBare | kIec, kRequested);
    r.after("erroroutof", *size, 80);
    finish(r, "ggml_vulkan");
    if (r.message.phase == "unknown") r.phase("load", "a device buffer");
    return true;
  }
  if (!r.follows("exceedsdevicebuffersizelimit", r.body(), 40) && !r.follows("erroroutof", r.body(), 60)) return false;
  if (r.after("exceedsdevicebuffersizelimit", r.body(), 40)) r.hint("single_allocation_limit");
  r.after("memory", r.end(), 40);
  finish(r, "ggml_vulkan");
  return true;
}

// "CUDA error: out of memory\n  current device: 0, in function ggml_cuda_..."; "CUDA error 2 at ggml-cuda.cu:100: out
// of memory"
bool cuda_error(Reading& r) {
  const size_t from = r.trigger();
  const bool ggml =
      r.follows("ggml", from, 200) || r.near_before(from, "ggml", 80) || r.follows("currentdevice:", from, 60);
  if (!ggml || !r.after("outofmemory", from, 120)) return false;
  if (const auto device = r.after("currentdevice:", from, 80)) r.device(*device);
  r.identify("llama.cpp", "ggml_cuda_error");
  return true;
}

// "ggml_cuda_host_malloc: failed to allocate 1024.00 MiB of pinned memory: out of memory": the program continues
bool pinned(Reading& r) {
  const auto failed = r.after("failedtoallocate", r.body(), 8);
  if (!failed) return false;
  r.amount(*failed, kIec | kSi, kRequested);
  r.after("outofmemory", *failed, 60);
  r.hint("soft");
  r.hint("host_ram");
  r.identify("llama.cpp", "ggml_pinned");
  return true;
}

// "ggml_aligned_malloc: insufficient memory (attempted to allocate 1024.00 MB)"
bool aligned(Reading& r) {
  if (const auto tried = r.after("attemptedtoallocate", r.body(), 40)) r.amount(*tried, kIec | kSi, kRequested);
  r.hint("host_ram");
  finish(r, "ggml_host");
  return true;
}

// "ggml_new_object: not enough space in the context's memory pool (needed 18728304, available 18682672)"
bool context_pool(Reading& r) {
  if (const auto needed = r.after("(needed", r.body(), 60)) {
    const auto amount = quantity_at(r.text(), *needed, kBare);
    // "needed 18728304, available": the comma ends the first figure.
    if (amount && r.at(amount->end, ",")) r.amount(*needed, kBare, kRequested);
    if (const auto free = r.after("available", *needed, 40)) r.amount(*free, kBare, kFree);
  }
  r.identify("llama.cpp", "ggml_context");
  return true;
}

// "llama_kv_cache_init: failed to allocate buffer for kv cache", "llama_init_from_model: failed to initialize the
// context: failed to allocate compute pp buffers"
bool llama_context(Reading& r) {
  purpose(r);
  r.identify("llama.cpp", "llama_context");
  return true;
}

// "kIOGPUCommandBufferCallbackErrorOutOfMemory" of ggml's Metal backend; MLX has a separate row
bool metal(Reading& r) {
  if (!r.near_before(r.trigger(), "ggml", 240)) return false;
  r.identify("llama.cpp", "ggml_metal");
  return true;
}

// "model requires more system memory (39.4 GiB) than is available (30.0 GiB)"
bool ollama_system(Reading& r) {
  if (r.at(r.body(), "(")) r.amount(r.body() + 1, kIec, kRequested);
  if (const auto available = r.after("thanisavailable(", r.body(), 40)) r.amount(*available, kIec, kFree);
  r.identify("ollama", "ollama_sysmem");
  r.phase("load", "loading of the model");
  r.hint("host_ram");
  return true;
}

// level=WARN msg="model request too large for system" requested="39.4 GiB" available="30.0 GiB" total=... swap=...
bool ollama_request(Reading& r) {
  const auto quoted = [&](std::string_view key, const ByteField& field) {
    const auto at = r.after(key, r.body(), 160);
    if (at) r.amount(r.at(*at, "\"") ? *at + 1 : *at, kIec | kBare, field);
  };
  quoted("requested=", kRequested);
  quoted("available=", kFree);
  quoted("total=", kCapacity);
  r.identify("ollama", "ollama_request");
  r.phase("load", "loading of the model");
  r.hint("host_ram");
  return true;
}

// "llama runner process has terminated: cudaMalloc failed: out of memory", "... signal: killed"
bool ollama_runner(Reading& r) {
  const bool memory = r.follows("outofmemory", r.body(), 80) || r.follows("unabletoallocate", r.body(), 80) ||
                      r.follows("failedtoallocate", r.body(), 80);
  const bool killed = r.follows("signal:killed", r.body(), 8);
  if (!memory && !killed) return false;
  r.after(memory ? "allocate" : "killed", r.body(), 80);
  r.after("outofmemory", r.body(), 80);
  if (killed) r.hint("host_ram");
  r.identify("ollama", killed ? "ollama_killed" : "ollama_runner");
  r.phase("load", "the runner's start");
  return true;
}

}  // namespace

void add_ggml_recognisers(std::vector<Recogniser>& table) {
  table.push_back({"ggml_backend", "_buffer_type_alloc_buffer:", backend_buffer});
  table.push_back({"ggml_caller", "ggml_gallocr_reserve", caller});
  table.push_back({"ggml_caller", "alloc_tensor_range:", caller});
  table.push_back({"ggml_vulkan", "ggml_vulkan:", vulkan});
  table.push_back({"ggml_cuda_error", "cudaerror:outofmemory", cuda_error});
  table.push_back({"ggml_cuda_error", "cudaerror2at", cuda_error});
  table.push_back({"ggml_pinned", "host_malloc:", pinned});
  table.push_back({"ggml_host", "ggml_aligned_malloc:", aligned});
  table.push_back({"ggml_context", "notenoughspaceinthecontext'smemorypool", context_pool});
  table.push_back({"llama_context", "failedtoallocatebufferforkvcache", llama_context});
  table.push_back({"llama_context", "failedtoallocatecompute", llama_context});
  table.push_back({"ggml_metal", "kiogpucommandbuffercallbackerroroutofmemory", metal});
  table.push_back({"ollama_system", "modelrequiresmoresystemmemory", ollama_system});
  table.push_back({"ollama_request", "modelrequesttoolargeforsystem", ollama_request});
  table.push_back({"ollama_runner", "llamarunnerprocesshasterminated:", ollama_runner});
}

}  // namespace headroom::doctor
