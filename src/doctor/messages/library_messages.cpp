// bitsandbytes, MLX, ONNX Runtime, Paddle, CuPy and Theano.
#include <algorithm>

#include "doctor/messages/recognisers.h"

namespace headroom::doctor {
namespace {

// "Error out of memory at line 351 in file .../bitsandbytes/csrc/pythonInterface.c"
bool bitsandbytes(Reading& r) {
  const bool named = r.follows("bitsandbytes", r.body(), 300) || r.follows("pythoninterface", r.body(), 300) ||
                     r.follows("csrc/ops.cu", r.body(), 300);
  if (!named) return false;
  r.after("infile", r.body(), 24);
  r.identify("bitsandbytes", "bnb_managed");
  return true;
}

// "[metal::malloc] Attempting to allocate 48736917632 bytes which is greater than the maximum allowed buffer size of
// 30150672384 bytes.", "[malloc_or_wait] Unable to allocate 1234 bytes."
bool mlx(Reading& r) {
  const auto tried = r.after("toallocate", r.body(), 24);
  if (tried) {
    const auto end = r.amount(*tried, kIec, kRequested);
    if (end && r.at(*end, "whichisgreaterthan")) {
      r.hint("single_allocation_limit");
      if (const auto most = r.after("buffersizeof", *end, 60)) r.amount(*most, kIec, kCapacity);
    }
  } else if (!r.after("exceeded", r.body(), 40)) {
    return false;
  }
  r.identify("mlx", "mlx_metal");
  return true;
}

// "[METAL] Command buffer execution failed: Insufficient Memory (00000008:kIOGPUCommandBufferCallbackErrorOutOfMemory)"
bool mlx_command(Reading& r) {
  r.after("erroroutofmemory)", r.body(), 80);
  r.identify("mlx", "mlx_command");
  return true;
}
bool mlx_metal_words(Reading& r) {
  if (!r.follows("insufficientmemory", r.body(), 60)) return false;
  return mlx_command(r);
}

// "Failed to allocate memory for requested buffer of size 2830172160"
bool onnxruntime(Reading& r) {
  r.amount(r.body(), kBare | kIec, kRequested);
  if (r.message.requested_bytes && *r.message.requested_bytes > (int64_t{1} << 50)) r.hint("bogus_size");
  r.identify("onnxruntime", "ort_bfc");
  return true;
}

// "BFCArena::AllocateRawInternal(...) Available memory of 1048576 is smaller than requested bytes of 2830172160"
bool onnxruntime_arena(Reading& r) {
  const auto smaller = r.after("issmallerthanrequestedbytesof", r.body(), 40);
  if (!smaller) return false;
  r.amount(r.body(), kBare, kFree);
  r.amount(*smaller, kBare, kRequested);
  r.identify("onnxruntime", "ort_arena");
  return true;
}

// "Out of memory error on GPU 0. Cannot allocate 3.125000GB memory on GPU 0, [10.5GB memory has been allocated and]
// available memory is only 117.750000MB." GB means 1024^3.
bool paddle(Reading& r) {
  constexpr uint32_t kUnits = kIec | kSi;
  r.device(r.body());
  if (const auto asked = r.after("cannotallocate", r.body(), 24)) {
    const auto end = r.amount(*asked, kUnits, kRequested);
    if (end) {
      const auto text = r.text().view().substr(0, std::min(r.size(), *end + 120));
      const size_t held = text.find("memoryhasbeenallocated", *end);
      if (held != std::string_view::npos) r.amount_before(held, *end, kUnits, kAllocated);
      if (const auto free = r.after("availablememoryis", *end, 120)) {
        r.amount(r.at(*free, "only") ? *free + 4 : *free, kUnits, kFree);
      }
    }
  }
  r.identify("paddle", r.follows("gpumemory", r.body(), 60) ? "paddle_old" : "paddle");
  return true;
}

// "Cannot malloc 10.9 MB GPU memory. Available 8.9 MB."
bool paddle_malloc(Reading& r) {
  const auto end = r.amount(r.body(), kIec | kSi, kRequested);
  if (!end || !r.at(*end, "gpumemory")) return false;
  if (const auto free = r.after("available", *end, 24)) r.amount(*free, kIec | kSi, kFree);
  r.identify("paddle", "paddle_malloc");
  return true;
}

// "out of memory to allocate 1073741824 bytes (total 12373894656 bytes)" and, from 6, "Out of memory allocating
// 1,073,741,824 bytes (allocated so far: 12,373,894,656 bytes[, limit set to: 20,000,000,000 bytes])."
bool cupy(Reading& r) {
  const auto requested = quantity_at(r.text(), r.body(), kIec);
  const bool named = r.near_before(r.trigger(), "cupy", 60);
  const bool listed = requested && (r.at(requested->end, "(total") || r.at(requested->end, "(allocatedsofar"));
  if (!named && !listed) return false;
  if (requested) {
    r.amount(r.body(), kIec, kRequested);
    if (const auto total = r.after("(total", requested->end, 2)) r.amount(*total, kIec, kAllocated);
    if (const auto held = r.after("(allocatedsofar:", requested->end, 2)) r.amount(*held, kIec, kAllocated);
    if (const auto limit = r.after("limitsetto:", requested->end, 60)) r.amount(*limit, kIec, kProcessLimit);
  }
  const std::string_view format = r.at(r.trigger(), "outofmemoryto") ? "cupy_old" : "cupy";
  r.identify("cupy", format);
  return true;
}

// "Error allocating 411041792 bytes of device memory (out of memory). Driver report 191488000 bytes free and 2147483648
// bytes total"
bool theano(Reading& r) {
  constexpr size_t kBytes = 5, kReach = 24;  // "bytes"
  const size_t end = r.trigger() + kBytes, from = r.trigger() < kReach ? 0 : r.trigger() - kReach;
  if (!r.amount_before(end, from, kIec | kBare, kRequested)) return false;
  if (const auto report = r.after("driverreport", r.body(), 40))
    if (const auto free = r.amount(*report, kIec | kBare, kFree))
      if (const auto total = r.after("freeand", *free, 8)) r.amount(*total, kIec | kBare, kCapacity);
  r.identify("theano", "theano");
  return true;
}

}  // namespace

void add_library_recognisers(std::vector<Recogniser>& table) {
  table.push_back({"bitsandbytes", "erroroutofmemoryatline", bitsandbytes});
  table.push_back({"mlx", "[metal::malloc]", mlx});
  table.push_back({"mlx", "[malloc_or_wait]", mlx});
  table.push_back({"mlx", "[malloc]", mlx});
  table.push_back({"mlx_command", "[metal]commandbufferexecutionfailed:", mlx_metal_words});
  table.push_back({"onnxruntime", "failedtoallocatememoryforrequestedbufferofsize", onnxruntime});
  table.push_back({"onnxruntime_arena", "availablememoryof", onnxruntime_arena});
  table.push_back({"paddle", "outofmemoryerrorongpu", paddle});
  table.push_back({"paddle_malloc", "cannotmalloc", paddle_malloc});
  table.push_back({"cupy", "outofmemorytoallocate", cupy});
  table.push_back({"cupy", "outofmemoryallocating", cupy});
  table.push_back({"theano", "bytesofdevicememory", theano});
}

}  // namespace headroom::doctor
