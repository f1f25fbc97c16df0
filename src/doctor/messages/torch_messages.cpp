// PyTorch's caching allocators. The message by version:
//   0.4 - 1.3  (GPU 0; T total capacity; A already allocated; F free; C cached), where 1.0's "cached" excludes A
//   1.4 - 2.0  (... ; F free; [L allowed;] R reserved in total by PyTorch), from 1.10 with max_split_size_mb advice
//   2.1        GPU 0 has a total capacty of T of which F is free. Including non-PyTorch memory, this process has ...
//   2.2 -      capacity; expandable_segments advice; "with P allocated in private pools"
// XPU, NPU and HIP print these forms with their own names; IPEX and NPU still use the one in brackets.
#include <array>

#include <algorithm>

#include "doctor/messages/recognisers.h"

namespace headroom::doctor {
namespace {

struct Backend {
  std::string_view word;
  std::string_view framework;
};
constexpr std::array<Backend, 4> kBackends = {
    {{"cuda", "pytorch-cuda"}, {"hip", "pytorch-hip"}, {"xpu", "pytorch-xpu"}, {"npu", "pytorch-npu"}}};

// The framework named directly before `position`, else empty.
std::string_view backend_before(const Reading& r, size_t position) {
  for (const Backend& backend : kBackends) {
    if (r.before(position, backend.word)) return backend.framework;
  }
  return {};
}

// "6.64 GiB already allocated; ..." up to the closing bracket. The words after an amount give its meaning.
struct Label {
  std::string_view words;
  const ByteField* field;
};
constexpr std::array<Label, 7> kLabels = {{{"totalcapacity", &kCapacity},
                                           {"alreadyallocated", &kAllocated},
                                           {"free", &kFree},
                                           {"cached", &kUnallocated},
                                           {"reservedintotal", &kReserved},
                                           {"allowed", &kProcessLimit},
                                           {"currentactive", nullptr}}};

void bracketed_list(Reading& r, size_t position) {
  while (position < r.size()) {
    const auto amount = quantity_at(r.text(), position, kIec);
    if (!amount) return;
    const Label* found = nullptr;
    for (const Label& label : kLabels) {
      if (r.at(amount->end, label.words)) found = &label;
    }
    if (found == nullptr) return;
    if (found->field != nullptr) r.amount(position, kIec, *found->field);
    r.extend(amount->end + found->words.size());
    const size_t next = r.text().view().substr(amount->end, 60).find_first_of(";)");
    if (next == std::string_view::npos || r.text()[amount->end + next] == ')') return;
    position = amount->end + next + 1;
  }
}

// "(GPU 0; 7.79 GiB total capacity; ..." with `position` after the bracket.
bool bracketed(Reading& r, size_t position) {
  for (const std::string_view word : {"gpu", "npu", "xpu"}) {
    if (!r.at(position, word)) continue;
    const auto index = whole_number_at(r.text(), position + 3);
    if (!index || !r.at(index->end, ";")) return false;
    r.device(position + 3);
    bracketed_list(r, index->end + 1);
    return true;
  }
  return false;
}

// Any number of "Process 2271802 has 23.44 GiB memory in use.", "this process has ...", "... allowed;".
void process_lines(Reading& r, size_t position, size_t limit) {
  const auto text = r.text().view().substr(0, limit);
  for (size_t at = text.find("processhas", position); at != std::string_view::npos;
       at = text.find("processhas", at + 1)) {
    if (r.before(at, "this")) r.amount(at + 10, kIec, kProcess);
  }
  constexpr std::string_view kProcessWord = "process";
  for (size_t at = text.find(kProcessWord, position); at != std::string_view::npos;
       at = text.find(kProcessWord, at + 1)) {
    const auto pid = whole_number_at(r.text(), at + kProcessWord.size());
    if (!pid || !r.at(pid->end, "has") || r.message.other_processes.size() >= 64) continue;
    OtherProcess other;
    other.pid = pid->value;
    r.extend(pid->end + 3);
    if (const auto amount = quantity_at(r.text(), pid->end + 3, kIec)) {
      other.bytes = amount->bytes;
      r.extend(amount->end);
    }
    r.message.other_processes.push_back(other);
  }
  if (const size_t allowed = text.find("allowed;", position); allowed != std::string_view::npos) {
    r.amount_before(allowed, position, kIec, kProcessLimit);
  }
}

// "GPU 0 has a total capacity of 23.65 GiB of which 1.66 GiB is free. ..." at `position`.
bool sentences(Reading& r, size_t position, size_t limit) {
  const auto index = whole_number_at(r.text(), position + 3);
  if (!index || !r.at(index->end, "hasatotalcapac")) return false;
  r.device(position + 3);
  const auto capacity = r.after("yof", index->end, 20);
  size_t at = capacity ? *capacity : index->end;
  if (capacity) {
    if (const auto end = r.amount(*capacity, kIec, kCapacity)) at = *end;
  }
  if (r.at(at, "ofwhich")) {
    if (const auto end = r.amount(at + 7, kIec, kFree)) at = *end;
  }
  process_lines(r, at, limit);
  const auto text = r.text().view().substr(0, limit);
  const size_t allocated = text.find("oftheallocatedmemory", at);
  if (allocated == std::string_view::npos) return true;
  const auto end = r.amount(allocated + 20, kIec, kAllocated);
  if (!end) return true;
  if (const size_t pool = text.find("allocatedinprivatepools", *end); pool != std::string_view::npos) {
    r.amount_before(pool, *end, kIec, kPrivatePool);
  }
  if (const size_t unallocated = text.find("isreservedbypytorch", *end); unallocated != std::string_view::npos) {
    r.amount_before(unallocated, *end, kIec, kUnallocated);
    r.extend(unallocated + 19);
  }
  return true;
}

// The advice at the end is part of the message.
void advice(Reading& r, size_t limit) {
  const auto text = r.text().view().substr(0, limit);
  for (const std::string_view end :
       {"iflargetrysettingmax_split_size_mbtoavoidfragmentation", "pytorch_cuda_alloc_conf", "pytorch_hip_alloc_conf",
        "pytorch_alloc_conf", "seedocumentationformemorymanagement", "environment-variables)"}) {
    const size_t at = text.find(end, r.end());
    if (at != std::string_view::npos && at < r.end() + 260) r.extend(at + end.size());
  }
}

void complete(Message& m) {
  if (m.allocated_bytes && m.reserved_unallocated_bytes && !m.reserved_bytes &&
      *m.allocated_bytes <= INT64_MAX - *m.reserved_unallocated_bytes) {
    m.reserved_bytes = *m.allocated_bytes + *m.reserved_unallocated_bytes;
  } else if (m.allocated_bytes && m.reserved_bytes && !m.reserved_unallocated_bytes) {
    m.reserved_unallocated_bytes = std::max<int64_t>(0, *m.reserved_bytes - *m.allocated_bytes);
  }
}

std::string_view shape_name(const Reading& r, bool sentence_shape) {
  const auto text = r.text().view().substr(r.begin(), r.end() - r.begin());
  const auto has = [&](std::string_view part) { return text.find(part) != std::string_view::npos; };
  if (!sentence_shape) {
    if (has("cached)")) return "torch1_cached";
    if (r.message.framework == "pytorch-npu") return "npu";
    if (r.message.framework == "pytorch-xpu") return has("largerthan4gb") ? "xpu_ipex_4gb" : "xpu_ipex";
    return has("max_split_size") ? "torch1_reserved_hint" : "torch1_reserved";
  }
  if (has("capactyof")) return "torch2_capacty_split";
  if (r.message.framework == "pytorch-xpu") return has("oftheallocated") ? "torch2_capacity_xpu" : "xpu_short";
  if (has("expandable_segments"))
    return r.message.framework == "pytorch-hip" ? "torch2_capacity_hip" : "torch2_capacity_exp";
  return has("max_split_size") ? "torch2_capacity_split" : "torch2_capacity";
}

// "... out of memory. Tried to allocate 2.22 GiB ...". `tried` is the offset of "tried"; `framework` is empty when the
// start of the message is cut off.
bool tried_to_allocate(Reading& r, size_t tried, std::string_view framework) {
  constexpr size_t kWords = 15;  // "triedtoallocate"
  size_t limit = std::min(r.size(), tried + 6000);
  const size_t next = r.text().view().find("triedtoallocate", tried + kWords);
  if (next != std::string_view::npos) limit = std::min(limit, next);
  r.extend(tried + kWords);
  const auto requested = quantity_at(r.text(), tried + kWords, kIec);
  size_t at = requested ? requested->end : tried + kWords;
  if (requested && r.at(at, ".")) ++at;
  const bool bracket = r.at(at, "(");
  const bool sentence = !bracket && r.at(at, "gpu");
  if (framework.empty() && !bracket && !sentence) return false;
  if (requested) r.amount(tried + kWords, kIec, kRequested);
  const bool understood = bracket ? bracketed(r, at + 1) : sentence && sentences(r, at, limit);
  if (framework.empty() && !understood) return false;
  advice(r, limit);
  complete(r.message);
  if (framework.empty()) {
    const auto text = r.text().view().substr(tried, r.end() - tried);
    framework = text.find("pytorch_hip_alloc") != std::string_view::npos ? "pytorch-hip"
                : text.find("(npu") != std::string_view::npos            ? "pytorch-npu"
                                                                         : "pytorch-cuda";
  }
  r.message.framework = framework;
  r.message.format = understood ? shape_name(r, sentence) : "torch_cut";
  return true;
}

// "except torch.cuda.OutOfMemoryError": a name in a line of code; "Exception: CUDA out of memory" is a message.
bool in_except_clause(const Reading& r, size_t position) {
  const size_t from = position > 24 ? position - 24 : 0;
  const auto before = r.text().view().substr(from, position - from);
  const size_t word = before.rfind("except");
  return word != std::string_view::npos && before.substr(word + 6, 3) != "ion";
}

bool out_of_memory(Reading& r) {
  constexpr std::string_view kWords = "outofmemory";
  const size_t start = r.text().view().find(kWords, r.trigger());
  const std::string_view framework = backend_before(r, start);
  if (framework.empty() || in_except_clause(r, start)) return false;
  size_t at = start + kWords.size();
  r.extend(at);
  if (r.at(at, ".") || r.at(at, "!")) ++at;
  if (r.at(at, "triedtoallocate")) return tried_to_allocate(r, at, framework);
  // "torch.cuda.OutOfMemoryError", as a name in a line of code, is not a message.
  if (r.at(at, "error")) return false;
  r.identify(framework, "torch_no_numbers");
  return true;
}

// IPEX: "Current platform can NOT allocate memory block with size larger than 4GB! Tried to allocate ..."
bool block_above_4gb(Reading& r) {
  const auto tried = r.after("triedtoallocate", r.trigger(), 60);
  if (!tried) return false;
  r.hint("single_allocation_limit");
  return tried_to_allocate(r, *tried - 15, "pytorch-xpu");
}

// A message whose start is cut off, recognised by what follows the request.
bool headless(Reading& r) { return !r.before(r.trigger(), "you") && tried_to_allocate(r, r.trigger(), {}); }

// "torch.cuda.OutOfMemoryError" at the end of a truncated log, or with an empty text.
bool exception_name(Reading& r) {
  const size_t end = r.trigger() + r.text().view().substr(r.trigger()).find("error") + 5;
  if (in_except_clause(r, r.trigger()) || r.near_before(r.trigger(), "raise", 16)) return false;
  if (r.follows("outofmemory", end, 48) || r.follows("triedtoallocate", end, 300)) return false;
  if (!r.at(end, ":") && end != r.size()) return false;
  r.extend(end);
  r.identify(r.at(end + 1, "hip")   ? "pytorch-hip"
             : r.at(end + 1, "xpu") ? "pytorch-xpu"
                                    : "pytorch-cuda",
             "torch_no_numbers");
  return true;
}

// PyTorch with cudaMallocAsync: "Allocation on device 0 would exceed allowed memory. (out of memory)\nCurrently
// allocated : 6.42 GiB\nRequested : 1.25 GiB\nDevice limit : 8.00 GiB\nFree (according to CUDA): 0 bytes"
bool malloc_async(Reading& r) {
  const size_t body = r.body();
  if (r.before(r.trigger(), "allocationondevice0")) r.message.device_index = 0;
  struct Line {
    const char* label;
    const ByteField& field;
  };
  for (const Line& line : {Line{"currentlyallocated:", kAllocated}, Line{"requested:", kRequested},
                           Line{"devicelimit:", kCapacity}, Line{"free(accordingtocuda):", kFree}})
    if (const auto at = r.after(line.label, body, 240)) r.amount(*at, kIec, line.field);
  r.identify("pytorch-cuda", "torch_malloc_async");
  return true;
}

// "CUDA error: out of memory", "CUDA driver error: out of memory", "HIP error: out of memory": the driver refused an
// allocation outside the caching allocator.
bool driver_error(Reading& r) {
  const bool hip = r.at(r.trigger(), "hip"), xpu = r.at(r.trigger(), "xpu");
  r.extend(r.text().view().find("outofmemory", r.trigger()) + 11);
  r.identify(hip ? "pytorch-hip" : xpu ? "pytorch-xpu" : "pytorch-cuda", "torch_driver");
  return true;
}

// PyTorch 0.x: "cuda runtime error (2) : out of memory at ...", "THCudaCheck FAIL file=... error=2 : out of memory"
bool thc_runtime(Reading& r) {
  if (!r.after("outofmemory", r.trigger(), 24)) return false;
  r.identify("pytorch-cuda", "thc");
  return true;
}
bool thc_check(Reading& r) {
  const auto error = r.after("error=2:", r.trigger(), 300);
  if (!error && !r.follows("outofmemory", r.trigger(), 300)) return false;
  r.after("outofmemory", r.trigger(), 300);
  r.identify("pytorch-cuda", "thc_check");
  return true;
}

// Level Zero and SYCL under PyTorch XPU.
bool xpu_driver(Reading& r) {
  r.identify("pytorch-xpu", "xpu_driver");
  return true;
}

bool npu_driver(Reading& r) {
  if (!r.follows("memory", r.trigger(), 160)) return false;
  r.identify("pytorch-npu", "npu_driver");
  return true;
}

}  // namespace

void add_torch_recognisers(std::vector<Recogniser>& table) {
  for (const std::string_view name : {"cudaoutofmemory", "hipoutofmemory", "xpuoutofmemory", "npuoutofmemory"}) {
    table.push_back({"torch", name, out_of_memory});
  }
  table.push_back({"torch_malloc_async", "wouldexceedallowedmemory", malloc_async});
  table.push_back({"torch_block_4gb", "notallocatememoryblockwithsizelarger", block_above_4gb});
  table.push_back({"torch_headless", "triedtoallocate", headless});
  table.push_back({"torch_exception", "cuda.outofmemoryerror", exception_name});
  table.push_back({"torch_exception", "torch.outofmemoryerror", exception_name});
  for (const std::string_view name : {"cudaerror:outofmemory", "cudadrivererror:outofmemory", "hiperror:outofmemory",
                                      "xpuerror:outofmemory", "hiperroroutofmemory"}) {
    table.push_back({"torch_driver", name, driver_error});
  }
  table.push_back({"thc_runtime", "cudaruntimeerror(2)", thc_runtime});
  table.push_back({"thc_check", "thcudacheckfail", thc_check});
  table.push_back({"xpu_driver", "ur_result_error_out_of_", xpu_driver});
  table.push_back({"xpu_driver", "pi_error_out_of_", xpu_driver});
  table.push_back({"npu_driver", "el0004:", npu_driver});
}

}  // namespace headroom::doctor
